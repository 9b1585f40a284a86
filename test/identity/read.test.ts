// Texts of clients, cut to what is wanted of them, keep nothing else alive.

import t from 'tap'
import { built, measurePromoted } from '../helpers/promoted.ts'

t.test('what is remembered of a long text is as long as what was wanted', async (t) => {
  const bytes = (await measurePromoted(`
    import { textOf } from ${built('identity/read.js')}
    import { openParsers } from ${built('identity/parsers.js')}
    const parsers = openParsers()
    const TEXTS = 2_000
    gc()
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < TEXTS; i++) {
      const sent = Buffer.alloc(60_000, 97 + (i % 26)).toString('latin1')
      parsers.gpu(textOf(String(i) + ' ' + sent, 256))
    }
    gc()
    console.log(Math.round((process.memoryUsage().heapUsed - before) / TEXTS))`)) as number
  t.comment(`${bytes} bytes of each text of 60,000`)
  t.ok(bytes < 4_000)
})
