// Questions to all processes, over both kinds of bus: enough answers or the time ends them, and nothing is left behind.
import type { NatsConnection } from 'nats'
import t, { type Test } from 'tap'
import { type Ask, type AskConfig, openAsk } from '../../src/bus/ask.ts'
import type { Bus } from '../../src/bus/bus.ts'
import { openBus } from '../../src/bus/open.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { connectNats } from '../../src/lib/nats.ts'
import { startNats } from '../helpers/nats.ts'
import { pause } from '../helpers/processes.ts'

const server = await startNats({ jetStream: false })
t.teardown(() => server.remove())

/** Counts what still sleeps. */
function countingClock() {
  let sleeping = 0
  const clock: Clock = {
    ...systemClock,
    async sleep(ms, signal) {
      sleeping += 1
      await systemClock.sleep(ms, signal)
      sleeping -= 1
    },
  }
  return { clock, sleeping: () => sleeping }
}

interface World {
  /** A process with its own connection where there is one. */
  process(id: string, options?: Partial<AskConfig>): Promise<Ask & { readonly bus: Bus }>
  readonly errors: readonly unknown[]
  sleeping(): number
  /** Resolves when every process knows the subscriptions of all. */
  settle(): Promise<void>
}

let runs = 0
type Kind = 'local' | 'nats'

async function openWorld(t: Test, kind: Kind): Promise<World> {
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const prefix = `ask${process.pid}_${++runs}`
  const local = kind === 'local' ? await openBus({ backend: 'local', onError }) : null
  const { clock, sleeping } = countingClock()
  const connections: NatsConnection[] = []
  return {
    errors,
    sleeping,
    async settle() {
      // The server reads what comes over one connection in order.
      for (const connection of connections) await connection.rtt()
    },
    async process(id, options = {}) {
      let bus = local
      if (bus === null) {
        const connection = await connectNats({ servers: [server.url], name: id })
        connections.push(connection)
        t.teardown(() => connection.close())
        bus = await openBus({ backend: 'nats', connection, prefix, onError })
      }
      const ask = openAsk({ bus, clock, id, onError, ...options })
      t.teardown(() => ask.close())
      return { ...ask, bus }
    },
  }
}

const never = () => false

// Each has a world of its own, and most of them wait.
t.jobs = 4
for (const kind of ['local', 'nats'] as const) {
  const guarantee = (title: string, check: (t: Test, world: World) => Promise<void>) =>
    void t.test(`${kind}: ${title}`, async (t) => check(t, await openWorld(t, kind)))

  guarantee('every process is asked, the asking one too, until enough have answered', async (t, world) => {
    const names = ['a', 'b', 'c']
    const processes = await Promise.all(names.map((name) => world.process(name)))
    for (const [index, { answer }] of processes.entries()) {
      answer('where', (question) => ({ from: names[index], question }))
      answer('other', () => t.fail('wrong subject'))
    }
    await world.settle()
    const asked: number[] = []
    const began = performance.now()
    const answers = await processes[0]?.ask(
      'where',
      { id: 7 },
      {
        enough: (answers) => asked.push(answers.length) === 3,
        timeoutMs: 60_000,
      },
    )
    t.ok(performance.now() - began < 30_000, 'it does not wait for the time')
    const sorted = (answers as { from: string }[]).toSorted((x, y) => x.from.localeCompare(y.from))
    t.same(
      sorted,
      names.map((from) => ({ from, question: { id: 7 } })),
    )
    t.same(asked, [1, 2, 3])
    t.equal(world.sleeping(), 0, 'no timer is left')
    t.same(world.errors, [])
  })

  guarantee('the first good answer ends a question, and later ones are ignored', async (t, world) => {
    const asker = await world.process('asker')
    const [quick, slow] = [await world.process('quick'), await world.process('slow')]
    quick.answer('q', () => 'quick')
    let hurry = () => {}
    const answered = new Promise<void>((resolve) => {
      hurry = resolve
    })
    slow.answer('q', async () => {
      await answered
      return 'slow'
    })
    await world.settle()
    const options = { enough: () => true, timeoutMs: 60_000 }
    const answers = await asker.ask('q', 1, options)
    t.same(answers, ['quick'])
    hurry()
    await pause(150)
    t.same(answers, ['quick'], 'an answer that was given does not change')
    t.same(world.errors, [])
  })

  guarantee('time ends a question with what came, and null is no answer', async (t, world) => {
    const asker = await world.process('asker')
    asker.answer('q', () => null)
    asker.answer('q', async () => null)
    asker.answer('q', () => 'one')
    await world.settle()
    const began = performance.now()
    t.same(await asker.ask('q', null, { enough: never, timeoutMs: 2_000 }), ['one'])
    t.ok(performance.now() - began >= 1_995)
    t.same(await asker.ask('nobody', null, { enough: never, timeoutMs: 20 }), [])
    t.equal(world.sleeping(), 0)
  })

  guarantee('answers find their own question, however many are under way', async (t, world) => {
    const askers = [await world.process('a'), await world.process('b')] as const
    const answerer = await world.process('answerer')
    answerer.answer('double', async (n) => {
      await pause(((n as number) * 7) % 20)
      return (n as number) * 2
    })
    await world.settle()
    const options = { enough: () => true, timeoutMs: 60_000 }
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) => askers[(n % 2) as 0 | 1].ask('double', n, options)),
    )
    t.same(
      answers,
      Array.from({ length: 200 }, (_, n) => [n * 2]),
    )
    t.equal(world.sleeping(), 0)
  })

  guarantee('more questions than allowed are Unavailable, and room comes back', async (t, world) => {
    const asker = await world.process('asker', { questionsMax: 3 })
    asker.answer('q', () => 'yes')
    await world.settle()
    const waiting = Array.from({ length: 3 }, () => asker.ask('nobody', 0, { enough: never, timeoutMs: 50 }))
    await t.rejects(asker.ask('q', 0, { enough: () => true, timeoutMs: 50 }), Unavailable)
    t.same(await Promise.all(waiting), [[], [], []])
    t.same(await asker.ask('q', 0, { enough: () => true, timeoutMs: 60_000 }), ['yes'])
  })

  guarantee('an answerer that fails is reported and harms no question', async (t, world) => {
    const asker = await world.process('asker')
    asker.answer('q', () => {
      throw new Error('at once')
    })
    asker.answer('q', async () => {
      throw new Error('promised')
    })
    asker.answer('q', () => 'good')
    await world.settle()
    t.same(await asker.ask('q', 0, { enough: () => true, timeoutMs: 60_000 }), ['good'])
    await pause(20)
    t.same(world.errors.map((error) => (error as Error).message).sort(), ['at once', 'promised'])
    const asking = asker.ask('q', 0, {
      enough: () => {
        throw new Error('cannot judge')
      },
      timeoutMs: 60_000,
    })
    await t.rejects(asking, { message: 'cannot judge' })
    t.equal(world.sleeping(), 0)
  })

  guarantee('closing ends its questions and its answers, not those of others', async (t, world) => {
    const [leaving, staying] = [await world.process('leaving'), await world.process('staying')]
    leaving.answer('q', () => 'leaving')
    const stop = staying.answer('q', () => 'gone')
    staying.answer('q', () => 'staying')
    stop()
    await world.settle()
    const asking = leaving.ask('nobody', 0, { enough: never, timeoutMs: 10_000 })
    await leaving.close()
    t.same(await asking, [])
    await t.rejects(leaving.ask('q', 0, { enough: never, timeoutMs: 10 }), Unavailable)
    t.same(await staying.ask('q', 0, { enough: never, timeoutMs: 2_000 }), ['staying'])
    t.equal(world.sleeping(), 0)
  })
}
