// The protocol under simulation: a second thousand seeds, which only the long run has time for. model.test.ts holds the same guarantee
// with fewer; a file of its own runs beside it.

import t from 'tap'
import { holds, shortStacks } from './explore.ts'

shortStacks(t)

t.test('every accepted identification is decided once and never contradicted', (t) => holds(t, 1_001, 1_000))
