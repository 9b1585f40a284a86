import t, { type Test } from 'tap'
import { bootstrap, DEFAULT_WORKSPACE, prepareDeployment, type Seed } from '../../src/control/bootstrap.ts'
import { isWellFormed, keyForm, makeKey } from '../../src/domain/keys.ts'
import type { CommandDraft, CommandOutcome } from '../../src/records/commands.ts'
import { keyDigest, listKeys } from '../../src/records/keys.ts'
import { listWorkspaces } from '../../src/records/workspaces.ts'
import { openPorts, PARTITIONS, prepare, random, SOURCES, startOwner, startSubmit } from '../helpers/control-plane.ts'

const SEEDS: readonly Seed[] = [
  { kind: 'public', env: 'live' },
  { kind: 'secret', env: 'live' },
  { kind: 'public', env: 'test' },
  { kind: 'secret', env: 'test' },
]

async function opened(t: Test) {
  const ports = await openPorts(t)
  await prepare(ports)
  startOwner(t, ports)
  return { ...ports, submit: startSubmit(t, ports) }
}

const liveDigests = async (kv: Parameters<typeof listKeys>[0]) =>
  (await listKeys(kv, DEFAULT_WORKSPACE))
    .filter(({ revokedAt }) => revokedAt === null)
    .map(({ digest }) => digest)
    .sort()

t.test('the first start creates one workspace and four keys, later starts nothing', async (t) => {
  const { kv, submit } = await opened(t)
  const first = await bootstrap({ kv, submit, random, sealer: null, seeds: SEEDS })
  t.match(first.workspace, { id: DEFAULT_WORKSPACE, name: 'default', plan: 'enterprise' })
  t.same(
    first.generated.map(({ text }) => keyForm(text)),
    SEEDS,
  )
  await first.finish()
  t.same(await liveDigests(kv), first.generated.map(({ text }) => keyDigest(text)).sort())
  const again = await bootstrap({ kv, submit, random, sealer: null, seeds: SEEDS })
  t.same(again.generated, [])
  await again.finish()
  t.equal((await listWorkspaces(kv)).length, 1)
  t.equal((await listKeys(kv, DEFAULT_WORKSPACE)).length, 4)
})

t.test('a first start killed after any command is finished by the next one, and only printed keys live', async (t) => {
  for (let commands = 0; commands <= 5; commands++) {
    const { kv, submit } = await opened(t)
    let left = commands
    const dying = (draft: CommandDraft): Promise<CommandOutcome> => {
      if (left-- === 0) throw new Error('killed')
      return submit(draft)
    }
    const killed = await bootstrap({ kv, submit: dying, random, sealer: null, seeds: SEEDS }).catch(() => null)
    t.equal(killed !== null, commands === 5)
    const second = await bootstrap({ kv, submit, random, sealer: null, seeds: SEEDS })
    await second.finish()
    t.equal(second.generated.length, 4)
    t.same(await liveDigests(kv), second.generated.map(({ text }) => keyDigest(text)).sort())
    t.equal((await listWorkspaces(kv)).length, 1)
  }
})

t.test('a pre-seeded key is added if unknown, also later, and never revived once revoked', async (t) => {
  const { kv, submit } = await opened(t)
  const text = makeKey('secret', 'live', random)
  const later = makeKey('public', 'live', random)
  const seeds = (publicText?: string): Seed[] => [
    { kind: 'secret', env: 'live', text },
    { kind: 'public', env: 'live', ...(publicText === undefined ? {} : { text: publicText }) },
  ]
  const first = await bootstrap({ kv, submit, random, sealer: null, seeds: seeds() })
  await first.finish()
  t.equal(first.generated.length, 1)
  await bootstrap({ kv, submit, random, sealer: null, seeds: seeds(later) })
  t.ok((await liveDigests(kv)).includes(keyDigest(later)))
  const key = (await listKeys(kv, DEFAULT_WORKSPACE)).find(({ digest }) => digest === keyDigest(text))
  await submit({
    type: 'key.revoke',
    workspace: DEFAULT_WORKSPACE,
    env: null,
    actor: 'test',
    data: { id: key?.id ?? '' },
  })
  await bootstrap({ kv, submit, random, sealer: null, seeds: seeds(later) })
  t.notOk((await liveDigests(kv)).includes(keyDigest(text)))
  t.equal((await listKeys(kv, DEFAULT_WORKSPACE)).length, 3)
})

t.test('first positions are written once, and their loss is never taken for a first start', async (t) => {
  const ports = await openPorts(t)
  const { kv, log } = ports
  t.same(await prepare(ports), { partitions: PARTITIONS })
  for (let p = 0; p < PARTITIONS; p++) {
    for (const source of SOURCES) t.equal(await kv.position(`p/${p}`, source), 0)
  }
  await kv.commit([{ scope: 'p/1', guard: { source: 'sink', expect: 0, next: 12 } }])
  await prepare(ports)
  t.equal(await kv.position('p/1', 'sink'), 12)
  await t.rejects(prepareDeployment({ log, kv, partitions: PARTITIONS + 1, sources: SOURCES }), {
    name: 'WrongPartitions',
  })

  // Another log, or none of what it held, under the same records.
  await kv.commit([{ scope: 'system', guard: { source: 'changes.reader', expect: 0, next: 3 } }])
  await t.rejects(prepare(ports), { name: 'LostLog' })
  await log.append('changes', 0, [new Uint8Array(3), new Uint8Array(3), new Uint8Array(3)])
  await prepare(ports)

  const lost = await openPorts(t)
  await lost.log.append('identifications', 1, [new Uint8Array(3)])
  await t.rejects(prepare(lost), { name: 'NeedsRebuild' })
})

t.test('the checksum of a key finds every changed, lost or added character', async (t) => {
  const text = makeKey('secret', 'test', random)
  t.match(text, /^sk_test_[0-9A-Za-z]{49}$/)
  t.ok(isWellFormed(text))
  for (let i = 0; i < text.length; i++) {
    const other = text[i] === 'a' ? 'b' : 'a'
    t.notOk(isWellFormed(text.slice(0, i) + other + text.slice(i + 1)), `changed at ${i}`)
    t.notOk(isWellFormed(text.slice(0, i) + text.slice(i + 1)), `lost at ${i}`)
  }
  t.notOk(isWellFormed(`${text}a`))
  // The CRC-32 of this text is 0xa391aef8 by zlib: other tools can check keys as well.
  t.ok(isWellFormed(`pk_live_${'A'.repeat(43)}2ziWYC`))
})
