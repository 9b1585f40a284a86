// The protocol under simulation in deployments of other kinds: that lose a partition, whose processes accept and decide in threads of
// their own, whose rules put visitors on lists, whose
// visitors are merged, split and erased, whose devices move. The long form: npm run model -- --seeds 10000 with --loses-stream,
// --sharded, --handing, --spreading, --portions, --lists, --merging, --healing, --splitting, --moving and --erasing.

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

t.test('visitors are merged, split and erased whoever dies, a process or its thread', (t) =>
  holds(t, 1, sized({ quick: 6, usual: 35, long: 60 }), {
    sharded: true,
    merging: true,
    erasing: true,
    splitting: true,
  }),
)

t.test('what rules put on lists comes once, and erased visitors leave them', (t) =>
  holds(t, 1, sized({ quick: 3, usual: 40, long: 80 }), { lists: true, erasing: true }),
)

t.test('merged visitors are one in every record, whoever dies meanwhile', (t) =>
  holds(t, 1, sized({ quick: 3, usual: 35, long: 60 }), { merging: true, lists: true }),
)

t.test('whoever is erased is gone with all that were merged into it, and with whom it was merged into', (t) =>
  holds(t, 1, sized({ quick: 3, usual: 35, long: 60 }), { merging: true, lists: true, erasing: true }),
)

t.test('whoever is erased is gone with the visits it had then, and those split off before stay', (t) =>
  holds(t, 1, sized({ quick: 3, usual: 35, long: 60 }), { merging: true, erasing: true, splitting: true }),
)

t.test('whoever is erased is in no record, wherever its devices were', (t) =>
  holds(t, 1, sized({ quick: 3, usual: 35, long: 60 }), { moving: true, erasing: true }),
)

t.test('whom the engine found to be one is one in every record, whoever dies between decision and effect', (t) =>
  holds(t, 1, sized({ quick: 3, usual: 35, long: 60 }), { healing: true, lists: true }),
)

t.test('nobody who is merged, split or erased meanwhile is healed against that', (t) =>
  holds(t, 1, sized({ quick: 3, usual: 35, long: 60 }), {
    healing: true,
    merging: true,
    splitting: true,
    erasing: true,
  }),
)
