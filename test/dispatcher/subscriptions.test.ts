// The webhooks of an environment as senders and followers see them: read once for all who ask at once, and as they are now.

import t from 'tap'
import { openSubscriptions } from '../../src/dispatcher/subscriptions.ts'
import { createWorkspace, openPorts, prepare, startOwner, startSubmit } from '../helpers/control-plane.ts'

t.test(
  'thousands who ask at once share a reading, and nobody is given what was there before the question',
  async (t) => {
    const ports = await openPorts(t)
    await prepare(ports)
    startOwner(t, ports)
    const submit = startSubmit(t, ports)
    await submit(createWorkspace('ws_a'))
    const make = (id: string) =>
      submit({
        ...{ type: 'webhook.create', workspace: 'ws_a', env: 'live', actor: 'test' },
        data: {
          ...{ id, shape: 'B', url: 'https://shop.example/', events: ['*'], filters: null, description: null },
          ...{ status: 'active', sealed: 'x', webhooksMax: 10 },
        },
      } as never)
    let scans = 0
    const kv: Pick<typeof ports.kv, 'get' | 'scan'> = {
      get: (scope, keys) => ports.kv.get(scope, keys),
      scan: (scope, collection, range) => {
        scans++
        return ports.kv.scan(scope, collection, range)
      },
    }
    const subscriptions = openSubscriptions(kv)
    const askAll = async () => {
      const answers = await Promise.all(Array.from({ length: 2_000 }, () => subscriptions.tenant('ws_a', 'live')))
      return new Set(answers.map((tenant) => tenant?.subscriptions.size))
    }
    t.same(await askAll(), new Set([0]))
    t.ok(scans <= 2, `${scans} readings`)
    for (const count of [1, 2, 3]) {
      t.match(await make(`wh_${'0'.repeat(19)}${count}`), { ok: true })
      scans = 0
      t.same(await askAll(), new Set([count]))
      t.ok(scans <= 2, `${scans} readings`)
    }
  },
)
