// The protocol under simulation where rules put visitors on lists, where visitors are merged, split, healed and erased, and where devices
// move. The long form: npm run model -- --seeds 10000 with --lists, --merging, --healing, --splitting, --moving and --erasing.

import t from 'tap'
import { sized } from '../helpers/depth.ts'
import { holds, shortStacks } from './explore.ts'

shortStacks(t)

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
