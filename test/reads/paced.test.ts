// What anybody may ask of ClickHouse at will: how much of it at once, and whose questions are refused.

import t from 'tap'
import { Unavailable } from '../../src/lib/failures.ts'
import { openPaced } from '../../src/reads/paced.ts'

t.test(
  'questions are asked one at a time, rest as long as they took, and a workspace may have few of them waiting',
  async (t) => {
    let nowMs = 0
    const rests: [ms: number, over: () => void][] = []
    const asked: [workspace: unknown, done: (rows: object[]) => void, failed: (error: Error) => void][] = []
    const clock = {
      monotonic: () => nowMs,
      sleep: (ms: number) => new Promise<void>((over) => void rests.push([ms, over])),
    }
    const query = <Row>(_sql: string, params?: Readonly<Record<string, unknown>>) =>
      new Promise<Row[]>((done, failed) => {
        asked.push([params?.workspace, done as (rows: object[]) => void, failed])
      })
    const settled = () => new Promise((resolve) => setImmediate(resolve))
    const paced = openPaced({ query }, clock)
    const ask = (workspace: string) =>
      paced.query<object>('', { workspace }).then(
        () => 'answered',
        (error) => (error instanceof Unavailable ? 'unavailable' : String(error)),
      )

    const flood = Array.from({ length: 100 }, () => ask('ws_a'))
    const other = ask('ws_b')
    await settled()
    t.equal(asked.length, 1)
    t.same(await Promise.all(flood.slice(8)), Array(92).fill('unavailable'))
    for (let i = 0; i < 9; i++) {
      t.equal(asked.length, i + 1, 'one after the other')
      nowMs += 30
      if (i === 3) asked[i]?.[2](new Error('broken'))
      else asked[i]?.[1]([])
      await settled()
      t.equal(asked.length, i + 1, 'not before its rest')
      t.equal(rests.at(-1)?.[0], 30)
      rests.at(-1)?.[1]()
      await settled()
    }
    t.same(await Promise.all(flood.slice(0, 8)), [
      'answered',
      'answered',
      'answered',
      'Error: broken',
      'answered',
      'answered',
      'answered',
      'answered',
    ])
    t.equal(await other, 'answered', 'a flood keeps nobody else from asking')
    const later = ask('ws_a')
    await settled()
    asked.at(-1)?.[1]([])
    t.equal(await later, 'answered')
  },
)
