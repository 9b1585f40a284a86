// Where two sequences of answers differ: by member, with how many visits it differs in, and how many of those both recognised alike.
// Ids are drawn at random: two visitors are the same when both sequences named them at the same visit first.

export interface MemberDifference {
  readonly member: string
  readonly visits: number
  /** Of them those in which both builds named the same visitor. */
  readonly sameVisitor: number
  readonly example: { readonly visit: number; readonly before: string; readonly now: string }
}

export interface Differences {
  readonly visits: number
  /** In nothing but which ids were drawn. */
  readonly renamed: number
  /** In any member, and of them those with the same visitor. */
  readonly differing: number
  readonly differingSameVisitor: number
  /** Most frequent first. */
  readonly members: readonly MemberDifference[]
}

const EXAMPLE_CHARS_MAX = 80

/** Members of an answer by their path; lists are one member. */
function membersOf(value: unknown, path: string, into: Map<string, string>): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) into.set(path, JSON.stringify(value))
  else {
    for (const [name, member] of Object.entries(value)) membersOf(member, path === '' ? name : `${path}.${name}`, into)
  }
}

function membersIn(text: string): Map<string, string> {
  const members = new Map<string, string>()
  membersOf(JSON.parse(text), '', members)
  return members
}

const VISITOR_ID = /pv_[0-9A-Za-z]{20}/g
const TOKEN = /st_[A-Za-z0-9_-]{64}/g

/** Names each visitor by the visit that first named it; a token says whose it is and which storage it is of. */
function openNames() {
  const names = new Map<string, string>()
  function nameOf(id: string, visit: number): string {
    const known = names.get(id)
    if (known !== undefined) return known
    const name = `visitor of ${visit}`
    names.set(id, name)
    return name
  }
  return (text: string, visit: number): string =>
    text
      .replace(TOKEN, (token) => {
        const bytes = Buffer.from(token.slice(3), 'base64url')
        return `token ${bytes.readUInt32BE(2)} of pv_${bytes.toString('latin1', 12, 32)}`
      })
      .replace(VISITOR_ID, (id) => nameOf(id, visit))
}

const shortened = (text: string | undefined): string =>
  text === undefined ? 'absent' : text.length > EXAMPLE_CHARS_MAX ? `${text.slice(0, EXAMPLE_CHARS_MAX)}…` : text

export function createDifferences() {
  const found = new Map<string, { visits: number; sameVisitor: number; example: MemberDifference['example'] }>()
  const [nameBefore, nameNow] = [openNames(), openNames()]
  let visits = 0
  let renamed = 0
  let differing = 0
  let differingSameVisitor = 0

  function compareMembers(beforeText: string, nowText: string): void {
    const [before, now] = [membersIn(beforeText), membersIn(nowText)]
    const isSame = before.get('event.visitorId') === now.get('event.visitorId')
    differing++
    if (isSame) differingSameVisitor++
    for (const member of new Set([...before.keys(), ...now.keys()])) {
      if (before.get(member) === now.get(member)) continue
      const example = { visit: visits, before: shortened(before.get(member)), now: shortened(now.get(member)) }
      const one = found.get(member) ?? { visits: 0, sameVisitor: 0, example }
      one.visits++
      if (isSame) one.sameVisitor++
      found.set(member, one)
    }
  }

  return {
    add(before: string, now: string): void {
      const [namedBefore, namedNow] = [nameBefore(before, visits), nameNow(now, visits)]
      if (namedBefore !== namedNow) compareMembers(namedBefore, namedNow)
      else if (before !== now) renamed++
      visits++
    },
    result(): Differences {
      const members = [...found].map(([member, one]) => ({ member, ...one })).sort((a, b) => b.visits - a.visits)
      return { visits, renamed, differing, differingSameVisitor, members }
    },
  }
}

export function differencesText({ visits, renamed, differing, differingSameVisitor, members }: Differences): string {
  if (differing + renamed === 0) return `${visits} visits: every answer is the same to the byte`
  const names = `${renamed} in nothing but the ids that were drawn`
  if (differing === 0) return `${visits} visits: no answer differs, ${names}`
  const width = Math.max(...members.map(({ member }) => member.length))
  return [
    `${visits} visits: ${differing} answers differ, ${differingSameVisitor} of them with the same visitor; ${names}`,
    '',
    `${'member'.padEnd(width)}  visits  same visitor  first example`,
    ...members.map(({ member, visits: n, sameVisitor, example }) => {
      const said = `visit ${example.visit}: ${example.before} → ${example.now}`
      return `${member.padEnd(width)}  ${String(n).padStart(6)}  ${String(sameVisitor).padStart(12)}  ${said}`
    }),
  ].join('\n')
}
