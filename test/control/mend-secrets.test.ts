// What older builds left in clear is sealed at a start, where it stands and in `changes`, and means what it meant.

import t from 'tap'
import { mendSecrets } from '../../src/control/mend-secrets.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { openSealer, sealedBy } from '../../src/lib/sealed.ts'
import { readRuleset } from '../../src/records/rules.ts'
import { withOpenToken } from '../../src/records/secrets.ts'
import { openAddress } from '../../src/records/slack-addresses.ts'
import { listWorkspaces } from '../../src/records/workspaces.ts'
import { createWorkspace, openPorts, prepare, random, startOwner, startSubmit } from '../helpers/control-plane.ts'

const ADDRESS = 'https://hooks.slack.example/services/T000/B000/secret'

t.test('secrets of tokens and addresses of Slack in clear are sealed, and nothing is done twice', async (t) => {
  const ports = await openPorts(t)
  await prepare(ports)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  const draft = createWorkspace('ws_a')
  if (draft.type !== 'workspace.create') throw new Error(draft.type)
  t.ok((await submit({ ...draft, data: { ...draft.data, tokenSecret: 'in-clear-0123456789' } })).ok)
  const [before] = await listWorkspaces(ports.kv)
  const action = { verdict: 'allow', sideEffects: [{ type: 'slack', url: ADDRESS }] } as const
  const leaf = { field: 'signals.bot.detected', operator: 'equals', value: true } as const
  const maxima = { rulesMax: 10, activeMax: 10 }
  const made = await submit({
    type: 'rule.create',
    workspace: 'ws_a',
    env: 'live',
    actor: 'test',
    data: {
      id: 'rul_1',
      name: 'one',
      conditions: { operator: 'AND', rules: [leaf] },
      action,
      priority: null,
      status: 'live',
      maxima,
    },
  })
  t.ok(made.ok, JSON.stringify(made))
  const sealer = openSealer(random(32), random)
  const needs = { ...ports, submit, random, clock: systemClock, sealsOld: true }
  const survey = async () => {
    const unsealed = (await listWorkspaces(ports.kv)).filter(({ tokenSecret }) => sealedBy(tokenSecret) === null)
    return { sealer, unreadable: { tokens: [], webhooks: [], unsealed } }
  }
  await mendSecrets(needs, await survey())
  const [after] = await listWorkspaces(ports.kv)
  t.not(after?.tokenSecret, before?.tokenSecret)
  t.equal(after === undefined ? null : withOpenToken(sealer, after).tokenSecret, before?.tokenSecret)
  const effectOf = async () => (await readRuleset(ports.kv, 'ws_a', 'live'))?.rules[0]?.action.sideEffects?.[0]
  const effect = await effectOf()
  const url = effect?.type === 'slack' ? effect.url : ''
  t.match(url, /^https:\/\/hooks\.slack\.example\/#v1\./)
  t.equal(openAddress(sealer, url), ADDRESS)
  t.equal(openAddress(openSealer(random(32), random), url), null, 'not under another key')
  const records = await ports.log.read('changes', 0, 0, { recordsMax: 1_000, bytesMax: 10_000_000, waitMsMax: 0 })
  for (const { bytes } of records) {
    const text = Buffer.from(bytes).toString('latin1')
    t.notOk(text.includes(before?.tokenSecret ?? '') || text.includes('B000/secret'), 'changes tells neither')
  }
  const { length } = records
  await mendSecrets(needs, await survey())
  t.equal(await ports.log.last('changes', 0), length, 'twice equals once')
})
