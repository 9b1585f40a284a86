// The answer to a browser is the JSON its members make, to the byte.

import t from 'tap'
import { makeVisitorId } from '../../src/domain/ids.ts'
import { isoTime } from '../../src/events/present.ts'
import { presentResult } from '../../src/identity/result.ts'
import { verifyToken } from '../../src/identity/token.ts'
import { random } from '../helpers/control-plane.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { randomEvent } from '../helpers/stored-events.ts'

const SECRET = 'a-secret-of-a-workspace-0123456789'

t.test(
  'a public key gets ids and times, and the verdict where the workspace says so, as JSON writes them',
  async (t) => {
    const seed = testSeed()
    t.comment(`seed ${seed}`)
    const r = rng(seed)
    const wrong: string[] = []
    for (let i = 0; i < 500; i++) {
      const event = { ...randomEvent(r, 'ws_1', i), visitorId: makeVisitorId(random) }
      const clientResult = r.pick(['id', 'verdict'] as const)
      const workspace = { id: 'ws_1', plan: 'pro', settings: { clientResult }, tokenSecret: SECRET } as const
      const body = presentResult(event, workspace, 'public')
      const { storageToken } = JSON.parse(body) as { readonly storageToken: string }
      const claims = verifyToken(SECRET, 'ws_1', event.env, storageToken)
      if (claims === null) wrong.push(`no token of ours: ${storageToken}`)
      const expected = {
        requestId: event.requestId,
        visitorId: event.visitorId,
        visitorFound: event.visitorFound,
        confidence: event.confidence,
        firstSeenAt: isoTime(event.firstSeenAt),
        lastSeenAt: isoTime(event.lastSeenAt),
        timestamp: isoTime(event.timestamp),
        storageToken,
        ...(clientResult === 'id' ? {} : { verdict: event.verdict, challengeType: event.challengeType }),
      }
      if (body !== JSON.stringify(expected)) wrong.push(body)
    }
    t.same(wrong, [])
  },
)
