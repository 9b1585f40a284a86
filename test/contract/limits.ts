// What every backend of the limits guarantees.
import type { Test } from 'tap'
import { Unavailable } from '../../src/lib/failures.ts'
import { type Limits, type RateRule, SLIDING_LIMIT_MAX } from '../../src/limits/limits.ts'

export interface OpenedLimits {
  readonly limits: Limits
  /** Lets time pass. */
  pass(ms: number): Promise<void>
  /** Milliseconds since the Unix epoch on the clock that the limits go by. */
  now(): Promise<number>
}

const fixed = (limit: number, windowMs: number, name = 'class'): RateRule => ({ name, kind: 'fixed', limit, windowMs })
const sliding = (limit: number, windowMs: number, name = 'burst'): RateRule => ({
  name,
  kind: 'sliding',
  limit,
  windowMs,
})
const HOUR_MS = 3_600_000

export function limitsContract(t: Test, name: string, open: () => Promise<OpenedLimits>): void {
  t.test(`limits contract: ${name}`, { buffered: true }, async (t) => {
    // Each has limits of its own, and most of them wait.
    t.jobs = 8
    const guarantees: Promise<unknown>[] = []
    const guarantee = (title: string, check: (t: Test, opened: OpenedLimits) => Promise<void>) =>
      guarantees.push(
        t.test(title, { buffered: true }, async (t) => {
          const opened = await open()
          t.teardown(() => opened.limits.close())
          await check(t, opened)
        }),
      )

    guarantee('a fixed window takes its limit and begins again with the clock', async (t, { limits, pass, now }) => {
      // A day, so that no window ends during the test.
      const rule = fixed(3, 24 * HOUR_MS)
      const remaining: number[] = []
      for (let take = 0; take < 3; take += 1) {
        const taken = await limits.take('key', [rule])
        t.match(taken, { allowed: true, retryAfterMs: 0, windows: [{ limit: 3 }] })
        remaining.push(taken.windows[0]?.remaining ?? -1)
      }
      t.same(remaining, [2, 1, 0])
      const from = await now()
      const refused = await limits.take('key', [rule])
      const to = await now()
      const [window] = refused.windows
      t.match([refused.allowed, window?.remaining], [false, 0])
      t.equal((window?.resetAt ?? 1) % rule.windowMs, 0, 'windows begin at multiples of their length')
      const refusedAt = (window?.resetAt ?? 0) - refused.retryAfterMs
      t.ok(refusedAt >= from - 1_000 && refusedAt <= to + 1_000, 'the wait lasts until the window ends')
      t.equal((await limits.take('other', [rule])).allowed, true)
      t.equal((await limits.take('key', [{ ...rule, name: 'other' }])).allowed, true)

      const brief = fixed(1, 100)
      const { windows } = await limits.take('brief', [brief])
      await pass(Math.max((windows[0]?.resetAt ?? 0) - (await now()), 0) + 1)
      t.equal((await limits.take('brief', [brief])).allowed, true)
    })

    guarantee('no span of a sliding window holds more than its limit', async (t, { limits, pass, now }) => {
      const rule = sliding(4, 200)
      const allowedAt: number[] = []
      for (let take = 0; take < 40; take += 1) {
        const before = await now()
        const { allowed } = await limits.take('key', [rule])
        if (allowed) allowedAt.push(before, await now())
        await pass(13)
      }
      t.ok(allowedAt.length / 2 >= 8, 'units come back one by one')
      for (let first = 0; first + 8 < allowedAt.length; first += 2) {
        const spread = (allowedAt[first + 9] ?? 0) - (allowedAt[first] ?? 0)
        if (spread < rule.windowMs) t.fail(`five within ${spread} ms`)
      }
    })

    guarantee('the wait a refusal names is enough, and remaining units come back', async (t, { limits, pass }) => {
      const rule = sliding(5, 2_500)
      t.equal((await limits.take('key', [rule], 3)).windows[0]?.remaining, 2)
      await pass(40)
      t.equal((await limits.take('key', [rule], 2)).windows[0]?.remaining, 0)
      const refused = await limits.take('key', [rule], 4)
      t.equal(refused.allowed, false)
      await pass(refused.retryAfterMs + 1)
      t.equal((await limits.take('key', [rule], 4)).allowed, true)
      const over = await limits.take('key', [rule], 6)
      t.match(over, { allowed: false, retryAfterMs: rule.windowMs }, 'more than the limit never fits')
      await pass(rule.windowMs + 1)
      t.equal((await limits.take('key', [rule], 0)).windows[0]?.remaining, 5)
    })

    guarantee('several rules are taken from together or not at all', async (t, { limits }) => {
      const rules = [fixed(10, 24 * HOUR_MS), sliding(2, HOUR_MS), fixed(100, 24 * HOUR_MS, 'total')]
      const remaining = async (cost: number) => {
        const { allowed, windows } = await limits.take('key', rules, cost)
        return [allowed, ...windows.map((window) => window.remaining)]
      }
      t.same(await remaining(1), [true, 9, 1, 99])
      t.same(await remaining(2), [false, 9, 1, 99], 'a refusal consumes nothing')
      t.same(await remaining(1), [true, 8, 0, 98])
      t.same(await remaining(1), [false, 8, 0, 98])
      t.same(await remaining(0), [true, 8, 0, 98], 'looking is free')
      const refused = await limits.take('key', [fixed(8, 24 * HOUR_MS), sliding(2, HOUR_MS)])
      t.ok(
        refused.retryAfterMs > HOUR_MS - 60_000 && refused.retryAfterMs <= HOUR_MS,
        'until the last of them allows it',
      )
      t.same(
        refused.windows.map(({ limit }) => limit),
        [8, 2],
      )
      t.equal((await limits.take('key', [fixed(1, 24 * HOUR_MS)])).windows[0]?.remaining, 0, 'a lowered limit')
    })

    guarantee('of many callers at once exactly the limit is served', async (t, { limits }) => {
      const rules = [fixed(50, 24 * HOUR_MS), sliding(30, HOUR_MS)]
      const taken = await Promise.all(Array.from({ length: 200 }, () => limits.take('key', rules)))
      t.equal(taken.filter(({ allowed }) => allowed).length, 30)
      t.equal((await limits.take('key', rules, 0)).windows[0]?.remaining, 20)
    })

    guarantee('limits of none and of many', async (t, { limits }) => {
      t.equal((await limits.take('key', [fixed(0, 1_000)])).allowed, false)
      t.equal((await limits.take('key', [sliding(0, 1_000)])).allowed, false)
      const wide = sliding(SLIDING_LIMIT_MAX, HOUR_MS)
      t.equal((await limits.take('wide', [wide], SLIDING_LIMIT_MAX)).windows[0]?.remaining, 0)
      t.equal((await limits.take('wide', [wide])).allowed, false)
    })

    guarantee('what cannot be is refused before it counts', async (t, { limits }) => {
      const rule = fixed(5, 24 * HOUR_MS)
      const wrong: [string, RateRule[], number?][] = [
        ['', [rule]],
        ['a b', [rule]],
        ['{a}', [rule]],
        ['k'.repeat(201), [rule]],
        ['key', []],
        ['key', [rule, rule]],
        ['key', [rule], -1],
        ['key', [rule], 0.5],
        ['key', [rule, fixed(1.5, 1_000, 'x')]],
        ['key', [rule, fixed(-1, 1_000, 'x')]],
        ['key', [rule, fixed(1, 0, 'x')]],
        ['key', [rule, fixed(1, 25 * HOUR_MS, 'x')]],
        ['key', [rule, fixed(1, 1_000, 'a b')]],
        ['key', [rule, sliding(SLIDING_LIMIT_MAX + 1, 1_000)]],
        ['key', Array.from({ length: 9 }, (_, at) => fixed(1, 1_000, `${at}`))],
      ]
      for (const [key, rules, cost] of wrong) await t.rejects(limits.take(key, rules, cost), RangeError)
      t.equal((await limits.take('key', [rule], 0)).windows[0]?.remaining, 5)
    })

    guarantee('after close every call fails', async (t, { limits }) => {
      await limits.close()
      await t.rejects(limits.take('key', [fixed(1, 1_000)]), Unavailable)
      await limits.close()
    })
    await Promise.all(guarantees)
  })
}
