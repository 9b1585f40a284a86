// Events as they are decided, newest on top: filtered by the server, held still while somebody reads.

import { useEffect, useRef, useState } from 'preact/hooks'
import { sentenceOf } from '../../lib/act.ts'
import { RefusedError } from '../../lib/api.ts'
import { readEventStream } from '../../lib/event-stream.ts'
import { wholeText } from '../../lib/format.ts'
import type { Event } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import type { Search } from './filters.tsx'
import { EVENT_HEAD, EventRow } from './rows.tsx'

const ROWS_MAX = 200
/** Rows come by the batch, so that fifty a second are ten paints a second. */
const PAINT_EVERY_MS = 100
const AGAIN_MS = 2_000

type Connection = 'connecting' | 'live' | 'lost' | 'refused'
const SAYS: Readonly<Record<Connection, string>> = {
  connecting: 'connecting',
  live: 'live',
  lost: 'connection lost, trying again',
  refused: 'stopped',
}
const KINDS = { connecting: 'new', live: 'good', lost: 'bad', refused: 'bad' } as const

export function LiveTail({ search }: { readonly search: Search }) {
  const [rows, setRows] = useState<readonly Event[]>([])
  const [connection, setConnection] = useState<Connection>('connecting')
  const [problem, setProblem] = useState<string | null>(null)
  const [isPaused, setIsPaused] = useState(false)
  const [isHeld, setIsHeld] = useState(false)
  const [skipped, setSkipped] = useState(0)
  const waiting = useRef<Event[]>([])
  const [waits, setWaits] = useState(0)
  const isStill = isPaused || isHeld
  const asked = JSON.stringify(search)

  useEffect(() => {
    const leaving = new AbortController()
    setRows([])
    waiting.current = []
    async function follow(): Promise<void> {
      while (!leaving.signal.aborted) {
        try {
          await readEventStream(
            '/v1/events/stream',
            JSON.parse(asked),
            leaving.signal,
            ({ event, data }) => {
              if (event === 'event') waiting.current.unshift(JSON.parse(data))
              if (event === 'skipped') setSkipped((before) => before + (JSON.parse(data).count as number))
              waiting.current.length = Math.min(waiting.current.length, ROWS_MAX)
            },
            () => {
              setConnection('live')
              setProblem(null)
            },
          )
        } catch (error) {
          if (leaving.signal.aborted) return
          setProblem(sentenceOf(error as Error))
          if (error instanceof RefusedError && error.status >= 400 && error.status < 500 && error.status !== 429) {
            setConnection('refused')
            return
          }
        }
        setConnection('lost')
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
    void follow()
    return () => leaving.abort()
  }, [asked])

  useEffect(() => {
    const timer = setInterval(() => {
      const some = waiting.current
      setWaits(some.length)
      if (isStill || some.length === 0) return
      waiting.current = []
      setWaits(0)
      setRows((before) => [...some, ...before].slice(0, ROWS_MAX))
    }, PAINT_EVERY_MS)
    return () => clearInterval(timer)
  }, [isStill])

  return (
    <Card
      title="Live"
      actions={
        <span class="row">
          <span class="chip" data-kind={KINDS[connection]} role="status">
            {SAYS[connection]}
          </span>
          {skipped > 0 && <span class="quiet">{wholeText(skipped)} not shown: more than 50 a second</span>}
          {isStill && waits > 0 && <span class="quiet">{wholeText(waits)} wait</span>}
          <button type="button" class="slim" aria-pressed={isPaused} onClick={() => setIsPaused(!isPaused)}>
            {isPaused ? 'Go on' : 'Pause'}
          </button>
        </span>
      }
    >
      {problem !== null && <p class="hint">{problem}</p>}
      {rows.length === 0 ? (
        <Empty title="Nothing yet">What is decided from now on stands here within a second.</Empty>
      ) : (
        <div
          class="tail"
          // Only a mouse holds the list still: where a finger has tapped nothing leaves again.
          onPointerEnter={({ pointerType }) => setIsHeld(pointerType === 'mouse')}
          onPointerLeave={() => setIsHeld(false)}
        >
          <Table label="Events as they are decided" head={EVENT_HEAD}>
            {rows.map((event) => (
              <EventRow key={event.requestId} of={event} />
            ))}
          </Table>
        </div>
      )}
    </Card>
  )
}
