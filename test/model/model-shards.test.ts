// The protocol under simulation where the log loses a partition, and where processes accept and decide in threads of their own. The long form:
// npm run model -- --seeds 10000 with --loses-stream, --sharded, --handing, --spreading and --portions.

import t from 'tap'
import { sized } from '../helpers/depth.ts'
import { holds, shortStacks } from './explore.ts'

shortStacks(t)

t.test('where the log loses a partition, all that is accepted later is decided once', (t) =>
  holds(t, 1, sized({ quick: 3, usual: 35, long: 60 }), { losesStream: true }),
)

t.test('what a lost thread handed over is adopted where it was written, and was told to nobody where it was not', (t) =>
  holds(t, 1, sized({ quick: 5, usual: 60, long: 200 }), { sharded: true }),
)

t.test('what is handed over to a thread that dies before it has answered is decided once or not accepted', (t) =>
  holds(t, 1, sized({ quick: 4, usual: 40, long: 200 }), { sharded: true, handing: true }),
)

t.test('a partition that moves to another thread is decided there, whoever dies on the way', async (t) => {
  await holds(t, 1, sized({ quick: 4, usual: 60, long: 300 }), { sharded: true, spreading: true })
  await holds(t, 1, sized({ quick: 3, usual: 40, long: 200 }), { sharded: true, spreading: true, handing: true })
})

t.test(
  'what is more than a commit takes is stored in parts, and counted once whoever takes over meanwhile',
  async (t) => {
    await holds(t, 1, sized({ quick: 4, usual: 60, long: 200 }), { portions: true })
    await holds(t, 1, sized({ quick: 3, usual: 30, long: 100 }), { portions: true, sharded: true, handing: true })
  },
)
