// Some events were of another device, which becomes a visitor of its own.

import { useLocation } from 'wouter-preact'
import { useAct } from '../../lib/act.ts'
import { call } from '../../lib/api.ts'
import { wholeText } from '../../lib/format.ts'
import { Problem } from '../../ui/state.tsx'

export function Split({
  visitorId,
  requestIds,
  done,
}: {
  readonly visitorId: string
  readonly requestIds: readonly string[]
  readonly done: () => void
}) {
  const act = useAct()
  const [, go] = useLocation()
  const split = () =>
    act.run(async () => {
      const made = await call<{ visitorId: string }>(`/v1/visitors/${visitorId}/split`, {
        method: 'POST',
        body: { requestIds },
      })
      done()
      go(`/visitors/${made.visitorId}`)
    }, 'The events are another visitor’s now.')
  return (
    <div class="hint">
      <p>Choose the events that were of another device. It becomes a visitor of its own; lists stay with this one.</p>
      <div class="row">
        <button
          type="button"
          class="primary"
          disabled={act.isBusy || requestIds.length === 0}
          onClick={() => void split()}
        >
          Split off {wholeText(requestIds.length)}
        </button>
      </div>
      <Problem error={act.error} />
    </div>
  )
}
