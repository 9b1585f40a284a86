// All that is held of a visitor, as one file, for whoever asks.

import { useAct } from '../../lib/act.ts'
import { call, session, useLongAct } from '../../lib/api.ts'
import { saveFile } from '../../lib/save-file.ts'
import type { Env } from '../../lib/types.ts'
import { Problem } from '../../ui/state.tsx'

interface ExportPage {
  readonly events: readonly unknown[]
  readonly nextCursor: string | null
}

export function ExportButton({ visitorId }: { readonly visitorId: string }) {
  const act = useAct()
  const masked = session.value?.person.role === 'viewer'
  const startLong = useLongAct()
  async function readAll(environment: Env): Promise<void> {
    const path = `/v1/visitors/${visitorId}/export`
    const read = (cursor: string | null) =>
      call<ExportPage>(path, { query: { cursor, masked: masked || null }, environment })
    const first = await read(null)
    const events = [...first.events]
    for (let next = first.nextCursor; next !== null; ) {
      const page = await read(next)
      events.push(...page.events)
      next = page.nextCursor
    }
    const { hasMore: _, nextCursor: __, ...whole } = { hasMore: false, ...first, events }
    saveFile(`${visitorId}.json`, `${JSON.stringify(whole, null, 2)}\n`, 'application/json')
  }
  const save = () =>
    act.run(
      () => startLong(`The export of ${visitorId}`, readAll),
      masked ? 'Saved, with addresses and e-mails masked.' : 'Saved. The export is in the audit log.',
    )
  return (
    <>
      <button type="button" disabled={act.isBusy} onClick={() => void save()}>
        {act.isBusy ? 'Reading…' : 'Export'}
      </button>
      <Problem error={act.error} />
    </>
  )
}
