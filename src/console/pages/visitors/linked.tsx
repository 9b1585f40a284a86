// Other visitors that share an account with this one, or were merged with it.

import { call, environment } from '../../lib/api.ts'
import { useLoadBy } from '../../lib/load.ts'
import type { CursorPage, Event } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { Id } from '../../ui/words.tsx'

const OWN_EVENTS = 100
const ACCOUNTS_MAX = 5
const ADDRESSES_MAX = 5
const OTHERS_MAX = 50

interface Link {
  readonly visitorId: string
  readonly shares: readonly string[]
}

export function Linked({ visitorId }: { readonly visitorId: string }) {
  const loaded = useLoadBy(`${environment.value} linked ${visitorId}`, (signal) => readLinked(visitorId, signal))
  return (
    <Card title="Linked visitors">
      <Shown of={loaded}>
        {(links) =>
          links.length === 0 ? (
            <Empty title="None">No other visitor was seen with its latest accounts or addresses.</Empty>
          ) : (
            <ul class="plain-list">
              {links.map(({ visitorId: other, shares }) => (
                <li key={other}>
                  <Id of={other} whole />
                  <br />
                  <span class="quiet small">shares {shares.join(', ')}</span>
                </li>
              ))}
            </ul>
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

async function readLinked(visitorId: string, signal: AbortSignal): Promise<readonly Link[]> {
  const events = (query: Readonly<Record<string, string | number>>) =>
    call<CursorPage<Event>>('/v1/events', { query: { ...query, fields: 'full' }, signal })
  const own = (await events({ visitorId, limit: OWN_EVENTS })).data
  const accounts = [...new Set(own.flatMap(({ linkedId }) => linkedId ?? []))].slice(0, ACCOUNTS_MAX)
  const ranges = [...new Set(own.flatMap(({ ip }) => rangeOf(ip.address) ?? []))].slice(0, ADDRESSES_MAX)
  const shares = new Map<string, Set<string>>()
  const note = (found: readonly Event[], what: string) => {
    for (const { visitorId: other } of found) {
      if (other !== visitorId) shares.set(other, (shares.get(other) ?? new Set()).add(what))
    }
  }
  await Promise.all([
    ...accounts.map(async (linkedId) =>
      note((await events({ linkedId, limit: OTHERS_MAX })).data, `account ${linkedId}`),
    ),
    ...ranges.map(async (ip) => note((await events({ ip, limit: OTHERS_MAX })).data, `network ${ip}`)),
  ])
  return [...shares]
    .map(([other, what]) => ({ visitorId: other, shares: [...what] }))
    .sort((a, b) => b.shares.length - a.shares.length)
    .slice(0, OTHERS_MAX)
}
