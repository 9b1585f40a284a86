// What no webhook could be changed to is refused alike whether the webhook exists or not: a body tells nothing of whose ids there are.

import t from 'tap'
import { openServer } from '../helpers/rest-surface.ts'

t.test(
  'a change that is invalid for either form of registration is refused before the webhook is looked for',
  async (t) => {
    const { send, secret: key } = await openServer(t)
    const make = async (events: readonly string[]) =>
      (await send('POST', '/v1/webhooks', { key, body: { url: 'https://hooks.example.com/a', events } })).body
        .id as string
    const ids = [
      await make(['identification']),
      await make(['*']),
      'whk_00000000000000000000',
      'wh_00000000000000000000',
    ]
    for (const [body, field] of [
      [{ events: [] }, 'events'],
      [{ events: ['identification', 'visitor.new'] }, 'events'],
      [{ filters: {}, description: 'both' }, 'description'],
      [{ filters: null, enabled: true }, 'enabled'],
      [{ events: ['identification'], enabled: true }, 'enabled'],
      [{ events: ['*'], filters: {} }, 'filters'],
      [{ status: 'disabled' }, 'status'],
      [{ enabled: true, status: 'paused' }, 'status'],
    ] as const) {
      for (const id of ids) {
        const answer = await send('PUT', `/v1/webhooks/${id}`, { key, body })
        t.match(
          answer,
          { status: 400, body: { error: { code: 'validation_error', field } } },
          JSON.stringify([id, body]),
        )
      }
    }
    for (const id of ids.slice(2)) {
      for (const body of [{ filters: {} }, { enabled: true }, { events: ['*'] }]) {
        t.equal((await send('PUT', `/v1/webhooks/${id}`, { key, body })).status, 404, 'one of both forms could take it')
      }
    }
  },
)
