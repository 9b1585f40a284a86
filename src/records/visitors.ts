// A visitor in its partition's checkpoint: its match keys beside its packed state, so that a change of keys is seen
// without decoding the state.

import { Packr } from 'msgpackr'

export interface HeldVisitor {
  /** Index keys of the latest visit. */
  readonly keys: readonly string[]
  readonly state: Uint8Array
  /** Both, as the kv and the events log carry them. */
  readonly packed: Uint8Array
}

const packr = new Packr({ useRecords: false })

export function holdVisitor(keys: readonly string[], state: Uint8Array): HeldVisitor {
  return { keys, state, packed: new Uint8Array(packr.pack([keys, state])) }
}

export function unpackHeldVisitor(packed: Uint8Array): HeldVisitor {
  const [keys, state] = packr.unpack(packed) as [string[], Uint8Array]
  return { keys, state, packed }
}
