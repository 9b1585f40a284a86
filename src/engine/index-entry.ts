// An entry of the match index: who shares a match key, and how that is held in memory.

/** Ids that share a match key, newest last, and how many there ever were. */
export interface IndexEntry {
  readonly ids: readonly string[]
  readonly total: number
}
export const INDEX_IDS_MAX = 32

/** Of most entries a text: they have one id or few. The others are looked at so often that each batch takes them apart once. */
export type HeldIndex = string | IndexEntry
export const TEXT_IDS_MAX = 4

/** As it is held: how many ids there are, and a text of ASCII. Ids are letters, digits and underscores. */
export function packIndex({ ids, total }: IndexEntry): Buffer {
  const text = `${total} ${ids.join(' ')}`
  const packed = Buffer.allocUnsafe(1 + text.length)
  packed[0] = ids.length
  packed.write(text, 1, 'latin1')
  return packed
}

const ZERO = 48

export function readIndex(held: HeldIndex): IndexEntry {
  if (typeof held !== 'string') return held
  const idsAt = held.indexOf(' ') + 1
  let total = 0
  for (let i = 0; i < idsAt - 1; i++) total = total * 10 + held.charCodeAt(i) - ZERO
  return { total, ids: held.slice(idsAt).split(' ') }
}
