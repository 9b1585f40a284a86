// One cluster of roles on real NATS, Redis and ClickHouse, through its life: what its processes do together while all is well,
// while an engine dies, others join and leave, and none is there. It runs the suites beside it on the same processes.

import t, { type Test } from 'tap'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import type { Member } from '../helpers/cluster.ts'
import { makeAuthority } from '../helpers/receiver.ts'
import { cleanUp } from '../helpers/server.ts'
import { standStill } from '../helpers/standstill.ts'
import { deploy, held, PARTITIONS } from './deployed.ts'
import { openLists } from './lists.ts'
import { testRoles } from './roles.ts'
import { testSurface } from './surface.ts'
import { openVelocity } from './velocity.ts'

t.setTimeout(400_000)
t.teardown(cleanUp)

const authority = makeAuthority(t)
const deployed = await deploy({
  FINGERPOST_ALERTS_EVERY_SECONDS: '1',
  FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8,::1/128',
  FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
})
const { cluster } = deployed
t.teardown(() => cluster.stop())
const [, victim] = cluster.membersOf('engine') as [Member, Member]
const lists = await openLists(deployed)
const velocity = await openVelocity(deployed)

async function shared(t: Test, what: string, ...counts: number[]): Promise<void> {
  const found = await eventually(
    () => held(deployed, (told) => t.comment(told)),
    (each) => each.join() === counts.join(),
  )
  t.same(found, counts, what)
}

t.test('what processes do together', async (t) => {
  await shared(t, 'partitions are shared evenly', PARTITIONS / 2, PARTITIONS / 2)
  await testRoles(t, deployed)
  await testSurface(t, deployed, authority)
})

t.test('every engine decides by a change of a list, and by its end when its time is over', lists.changes)

t.test('an address and an account are counted over all engines, each event once', velocity.counted)

t.test('when an engine dies the others take over its partitions, and nothing that it knew is lost', async (t) => {
  const [first, second] = await lists.beginAdding()
  await victim.kill9()
  deployed.forget(victim)
  await shared(t, 'died', PARTITIONS)
  await second()
  t.same(await first(), [], 'what rules put on a list is there, once')
  await velocity.complete(t, 'no count is lost')
})

t.test('engines that join and leave are given partitions and give them back', async (t) => {
  await victim.restart()
  ;(cluster.members as Member[]).push(victim)
  const third = await cluster.add('engine')
  await shared(t, 'joined', 2, 3, 3)
  await velocity.complete(t, 'counts are the same on engines that have just come')
  t.equal(await third.server.stop(), 0)
  deployed.forget(third)
  await shared(t, 'left', PARTITIONS / 2, PARTITIONS / 2)
})

t.test('what is accepted while no engine runs is pending everywhere, and decided later', async (t) => {
  const { hasty, api } = await deployed.openWorkspace('pending')
  const engines = cluster.membersOf('engine').map(({ server }) => server.pid)
  for (const pid of engines) standStill(pid)
  const { status, body } = await hasty.identify({ ...browserBody(), userAgent: CHROME })
  t.equal(status, 202)
  const read = () => api.get(`/v1/events/${body.requestId}`)
  t.equal((await read()).status, 202, 'also for a process that did not accept it')
  for (const pid of engines) process.kill(pid, 'SIGCONT')
  t.equal((await eventually(read, (found) => found.status === 200)).status, 200, 'decided')
})

t.test('a cluster stops cleanly', async (t) => {
  for (const { server, roles } of cluster.members) t.equal(await server.stop(), 0, roles)
})
