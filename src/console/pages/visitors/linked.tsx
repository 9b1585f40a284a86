// Other visitors that share an account or a network with this one.

import { call, environment } from '../../lib/api.ts'
import { useLoadBy } from '../../lib/load.ts'
import type { CursorPage, Event, FoundVisitor } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { Id } from '../../ui/words.tsx'

const OWN_EVENTS = 100
const ACCOUNTS_MAX = 5
const ADDRESSES_MAX = 5
const OTHERS_MAX = 50
/** The visitor itself is among those that are found. */
const VISITORS_PER_CALL = OTHERS_MAX + 1

interface Link {
  readonly visitorId: string
  readonly shares: readonly string[]
}
interface Links {
  readonly links: readonly Link[]
  /** Whether there are more than these. */
  readonly hasMore: boolean
}

export function Linked({ visitorId }: { readonly visitorId: string }) {
  const loaded = useLoadBy(`${environment.value} linked ${visitorId}`, (signal) => readLinked(visitorId, signal))
  return (
    <Card title="Linked visitors">
      <Shown of={loaded}>
        {({ links, hasMore }) =>
          links.length === 0 ? (
            <Empty title="None">No other visitor was seen with its latest accounts or addresses.</Empty>
          ) : (
            <>
              <ul class="plain-list">
                {links.map(({ visitorId: other, shares }) => (
                  <li key={other}>
                    <Id of={other} whole />
                    <br />
                    <span class="quiet small">shares {shares.join(', ')}</span>
                  </li>
                ))}
              </ul>
              {hasMore && <p class="quiet small">There are more.</p>}
            </>
          )
        }
      </Shown>
    </Card>
  )
}

/** A masked address names its neighbours, so it is asked for as the range it stands for. */
function rangeOf(masked: string): string | null {
  if (/^\d+\.\d+\.\d+\.\*$/.test(masked)) return masked.replace('*', '0/24')
  if (masked.endsWith('::*')) return masked.replace(/\*$/, '/48')
  return masked.includes('/') ? masked : null
}

/** Visitors with an event that meets `query`, newest first, at least OTHERS_MAX where there are so many. */
async function findVisitors(query: Readonly<Record<string, string>>, signal: AbortSignal) {
  const found: FoundVisitor[] = []
  let cursor: string | null = null
  do {
    const page: CursorPage<FoundVisitor> = await call('/v1/visitors', {
      query: { ...query, limit: VISITORS_PER_CALL, cursor },
      signal,
    })
    found.push(...page.data)
    cursor = page.nextCursor
  } while (cursor !== null && found.length < OTHERS_MAX)
  return { found, hasMore: cursor !== null }
}

async function readLinked(visitorId: string, signal: AbortSignal): Promise<Links> {
  const query = { visitorId, fields: 'full', limit: OWN_EVENTS }
  const own = (await call<CursorPage<Event>>('/v1/events', { query, signal })).data
  const accounts = [...new Set(own.flatMap(({ linkedId }) => linkedId ?? []))].slice(0, ACCOUNTS_MAX)
  const ranges = [...new Set(own.flatMap(({ ip }) => rangeOf(ip.address) ?? []))].slice(0, ADDRESSES_MAX)
  const shares = new Map<string, string[]>()
  const answers = await Promise.all([
    ...accounts.map(async (linkedId) => [`account ${linkedId}`, await findVisitors({ linkedId }, signal)] as const),
    ...ranges.map(async (ip) => [`network ${ip}`, await findVisitors({ ip }, signal)] as const),
  ])
  for (const [what, { found }] of answers) {
    for (const { visitorId: other } of found) {
      if (other !== visitorId) shares.set(other, [...(shares.get(other) ?? []), what])
    }
  }
  const links = [...shares]
    .map(([other, shared]) => ({ visitorId: other, shares: shared }))
    .sort((a, b) => b.shares.length - a.shares.length)
  return {
    links: links.slice(0, OTHERS_MAX),
    hasMore: links.length > OTHERS_MAX || answers.some(([, { hasMore }]) => hasMore),
  }
}
