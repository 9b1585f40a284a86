// The protocol under simulation: the seeds behind those of model.test.ts.

import t from 'tap'
import { holds } from './explore.ts'

// Conflicts and outages are everyday here, and nobody reads where they were made.
Error.stackTraceLimit = 2

t.test('every accepted identification is decided once and never contradicted', (t) => holds(t, 1_001, 1_000))
