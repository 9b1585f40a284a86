// Adds pasted or uploaded entries, a thousand in one call, and names each line that is refused.

import { useState } from 'preact/hooks'
import { sentenceOf, useAct } from '../../lib/act.ts'
import { call, RefusedError, useLongAct } from '../../lib/api.ts'
import { wholeText } from '../../lib/format.ts'
import { notify } from '../../lib/notices.ts'
import type { EntriesChanged, Env, ListWithUse } from '../../lib/types.ts'
import { AreaField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem } from '../../ui/state.tsx'
import { type EntryLine, LINES_PER_CALL, lineOfField, readLines, type Wrong } from './bulk.ts'

const SHOWN_WRONG_MAX = 50

interface Outcome {
  readonly added: number
  readonly known: number
  readonly erased: number
  readonly wrong: readonly Wrong[]
}

export function BulkAdd({ list, done }: { readonly list: ListWithUse; readonly done: () => void }) {
  const [text, setText] = useState('')
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const act = useAct()
  const startLong = useLongAct()
  const upload = async (file: File | undefined) => {
    if (file !== undefined) setText(await file.text())
  }
  const submit = (event: Event) => {
    event.preventDefault()
    setOutcome(null)
    const what = `Adding to ${list.name}`
    const add = () =>
      startLong(what, async (env, hasGone) => {
        const found = await addAll(list.id, text, env)
        if (hasGone()) notify(`${what}: ${sumOf(found)}.`)
        setOutcome(found)
        if (found.wrong.length === 0) setText('')
        done()
      })
    void act.run(add)
  }
  return (
    <Card title="Add entries">
      <form class="form" onSubmit={submit}>
        <AreaField
          label="One entry a line"
          hint="value, or value,ttl in seconds,reason"
          placeholder={EXAMPLES[list.type]}
          value={text}
          onChange={setText}
        />
        <label class="field">
          <span class="label">Or a CSV file</span>
          <input
            type="file"
            accept=".csv,text/csv,text/plain"
            onChange={(event) => void upload(event.currentTarget.files?.[0])}
          />
        </label>
        <Problem error={act.error} />
        <button type="submit" class="primary" disabled={act.isBusy || text.trim() === ''}>
          {act.isBusy ? 'Adding…' : 'Add'}
        </button>
      </form>
      {outcome !== null && (
        <div role="status">
          <p>
            {sumOf(outcome)}
            {outcome.wrong.length > 0 && ':'}
          </p>
          <ul class="plain-list">
            {outcome.wrong.slice(0, SHOWN_WRONG_MAX).map(({ line, why }) => (
              <li key={line}>
                Line {line}: {why}
              </li>
            ))}
          </ul>
        </div>
      )}
    </Card>
  )
}

const sumOf = ({ added, known, erased, wrong }: Outcome): string =>
  [
    `${wholeText(added)} added`,
    ...(known > 0 ? [`${wholeText(known)} were on the list`] : []),
    ...(erased > 0 ? [`${wholeText(erased)} left out: visitors that were erased`] : []),
    ...(wrong.length > 0 ? [`${wholeText(wrong.length)} refused`] : []),
  ].join(', ')

const EXAMPLES: Readonly<Record<ListWithUse['type'], string>> = {
  visitor: 'pv_7Hq2LmZx90TbVcRk4WsE,86400,seen with stolen cards',
  ip: '203.0.113.0/24,,scraper',
  email: 'somebody@example.org',
}

/** All or nothing is what one call is: a line that is refused is taken out, and the rest tried again. */
async function addAll(listId: string, text: string, environment: Env): Promise<Outcome> {
  const path = `/v1/lists/${listId}/entries`
  const { lines, wrong } = readLines(text)
  const refused: Wrong[] = [...wrong]
  let added = 0
  let erased = 0
  let sent = 0
  for (let from = 0; from < lines.length; from += LINES_PER_CALL) {
    let part: readonly EntryLine[] = lines.slice(from, from + LINES_PER_CALL)
    while (part.length > 0) {
      try {
        const add = part.map(({ value, ttl, reason }) => ({
          value,
          ...(ttl === null ? {} : { ttl }),
          ...(reason === '' ? {} : { reason }),
        }))
        const answer = await call<EntriesChanged>(path, { method: 'PATCH', body: { add }, environment })
        added += answer.added
        erased += answer.skippedErased
        sent += part.length
        break
      } catch (error) {
        const line = error instanceof RefusedError ? lineOfField(error.field, part) : null
        if (line === null) throw error
        refused.push({ line, why: sentenceOf(error as Error).replace(/^add\[\d+\](?:\.\w+)?: /, '') })
        part = part.filter((one) => one.line !== line)
      }
    }
  }
  return { added, known: sent - added - erased, erased, wrong: refused.sort((a, b) => a.line - b.line) }
}
