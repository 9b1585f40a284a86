// What a site needs to send its first event: the snippet with a live check, its policy line, and the way through a proxy.

import { Link } from 'wouter-preact'
import { environment, session } from '../../lib/api.ts'
import { useEvery, useLoad } from '../../lib/load.ts'
import type { CursorPage, EventSummary } from '../../lib/types.ts'
import { Code } from '../../ui/copy.tsx'
import { Card } from '../../ui/page.tsx'
import { MomentText } from '../../ui/words.tsx'
import { policyOf } from './snippet.ts'
import { SnippetBox } from './snippet-box.tsx'

const LOOK_EVERY_MS = 2_000

export function Site() {
  const url = session.value?.serviceUrl ?? ''
  return (
    <div class="columns">
      <Card title="In your pages">
        <SnippetBox />
        <p class="quiet small">The verdict is for your back end: hand the requestId to it.</p>
        <LiveCheck />
      </Card>
      <div class="stack">
        <Card title="Content Security Policy">
          <Code label="What a page with a policy has to allow" text={policyOf(url)} />
        </Card>
        <Card title="Through your own domain">
          <p>
            Blockers know third-party addresses, and browsers keep a first party’s storage longer. A path of your own
            site that leads here needs a few lines of nginx, Caddy, Cloudflare or Next:
          </p>
          <p>
            <a href="/docs">Recipes in the documentation</a>
          </p>
        </Card>
      </div>
    </div>
  )
}

/** Tells as soon as an event of this environment is there. */
function LiveCheck() {
  const loaded = useLoad<CursorPage<EventSummary>>('/v1/events', { query: { limit: 1 } })
  useEvery(LOOK_EVERY_MS, loaded)
  const [event] = loaded.data?.data ?? []
  return (
    <p role="status">
      {event === undefined ? (
        <>
          <span class="chip" data-kind="new">
            waiting
          </span>{' '}
          for the first event of {environment.value}…
        </>
      ) : (
        <>
          <span class="chip" data-kind="good">
            it works
          </span>{' '}
          the latest event came <MomentText at={event.timestamp} relative />:{' '}
          <Link href={`/events/${event.requestId}`}>look at it</Link>
        </>
      )}
    </p>
  )
}
