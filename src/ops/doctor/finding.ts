// What the doctor says: findings by topic, as lines to read or as JSON.

const FINDING_TOPICS = ['native', 'present', 'private', 'reachable', 'fresh'] as const
export type FindingTopic = (typeof FINDING_TOPICS)[number]

/** `note`: it works, and could be better. `bad`: it must be mended. */
export type Level = 'ok' | 'note' | 'bad'

export interface Finding {
  readonly topic: FindingTopic
  readonly name: string
  readonly level: Level
  readonly says: string
  /** What to do about it. */
  readonly mend?: string
}

/** Makes the findings of a topic. */
export function findingsOf(topic: FindingTopic) {
  const make = (level: Level) => (name: string, says: string, mend?: string) => ({
    ...{ topic, name, level, says },
    ...(mend === undefined ? {} : { mend }),
  })
  return { ok: make('ok'), note: make('note'), bad: make('bad') }
}

export const isWell = (findings: readonly Finding[]): boolean => findings.every(({ level }) => level !== 'bad')

const MARKS: Readonly<Record<Level, string>> = { ok: 'ok  ', note: 'note', bad: 'BAD ' }

export function findingsText(findings: readonly Finding[]): string {
  const parts = FINDING_TOPICS.map((topic) => {
    const lines = findings
      .filter((finding) => finding.topic === topic)
      .flatMap(({ name, level, says, mend }) => [
        `  ${MARKS[level]}  ${name}: ${says}`,
        ...(mend === undefined ? [] : [`        → ${mend}`]),
      ])
    return [topic, ...lines].join('\n')
  })
  const count = (level: Level) => findings.filter((finding) => finding.level === level).length
  const sum = isWell(findings)
    ? `nothing must be mended, ${count('note')} notes`
    : `${count('bad')} to be mended, ${count('note')} notes`
  return [...parts, sum].join('\n\n')
}

export const findingsJson = (findings: readonly Finding[]): string =>
  JSON.stringify({ ok: isWell(findings), findings }, null, 2)
