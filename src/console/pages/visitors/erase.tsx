// Erases a visitor, and shows the receipt as it fills.

import { useState } from 'preact/hooks'
import { call } from '../../lib/api.ts'
import { useEvery, useLoad } from '../../lib/load.ts'
import type { Erasure } from '../../lib/types.ts'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { MomentText, StatusChip } from '../../ui/words.tsx'

const LOOK_EVERY_MS = 3_000

export function EraseButton({ visitorId }: { readonly visitorId: string }) {
  const [isAsking, setIsAsking] = useState(false)
  const [erasureId, setErasureId] = useState<string | null>(null)
  return (
    <>
      <button type="button" class="danger" onClick={() => setIsAsking(true)}>
        Erase
      </button>
      {isAsking && (
        <Confirm
          title="Erase this visitor"
          action="Erase for ever"
          typed={visitorId}
          onClose={() => setIsAsking(false)}
          onConfirm={async () => {
            const answer = await call<{ erasureId: string }>(`/v1/visitors/${visitorId}`, { method: 'DELETE' })
            setErasureId(answer.erasureId)
          }}
        >
          <p>
            Its profile, events, places on lists, counters and deliveries go. At once no read shows them any more; the
            last bytes are gone within a day. This cannot be undone, and the same device is a new visitor from then on.
          </p>
        </Confirm>
      )}
      {erasureId !== null && <Receipt erasureId={erasureId} onClose={() => setErasureId(null)} />}
    </>
  )
}

function Receipt({ erasureId, onClose }: { readonly erasureId: string; readonly onClose: () => void }) {
  const loaded = useLoad<Erasure>(`/v1/erasures/${erasureId}`)
  const isDone = loaded.data?.status === 'done'
  useEvery(LOOK_EVERY_MS, loaded, !isDone)
  return (
    <Dialog title="Receipt of the erasure" onClose={onClose}>
      <p>
        <code>{erasureId}</code>: keep it, <code>GET /v1/erasures/{erasureId}</code> tells the same.
      </p>
      <Shown of={loaded}>
        {(receipt) => (
          <>
            <p>
              <StatusChip of={receipt.status === 'done' ? 'done' : 'pending'} /> requested{' '}
              <MomentText at={receipt.requestedAt} />
            </p>
            <Table label="Stores" head={['Store', 'State', 'Expected by']}>
              {receipt.stores.map(({ store, status, expectedBy }) => (
                <tr key={store}>
                  <td>{store}</td>
                  <td>{status}</td>
                  <td>{expectedBy === null ? 'no byte is left' : <MomentText at={expectedBy} />}</td>
                </tr>
              ))}
            </Table>
          </>
        )}
      </Shown>
      <button type="button" onClick={onClose}>
        Close
      </button>
    </Dialog>
  )
}
