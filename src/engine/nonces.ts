// The nonces a partition has decided in the last two minutes (src/README.md, The protocol, 6), in flat arrays: at full load there are
// more than a million of them. Both clocks must agree that the time is over: the machine's may jump.

import { NONCE_WINDOW_MS } from '../domain/identify.ts'

export interface NonceEntry {
  readonly nonceHash: number
  readonly bodyHash: number
  /** Milliseconds of acceptance of the first request. */
  readonly acceptedAt: number
  readonly requestId: string
}

export interface Nonces {
  /** The first request with this nonce if it was accepted within the window around `atMs`, or became known here within it. */
  find(nonceHash: number, atMs: number): NonceEntry | null
  add(entry: NonceEntry): void
  /** Entries added since the last call, packed, for the checkpoint; null when there are none. */
  takeAdded(): Uint8Array | null
  /** Adds the entries of a packed chunk back. */
  restore(packed: Uint8Array): void
}

const ID_BYTES = 30
const ENTRY_BYTES = 24 + ID_BYTES
/** Above this many the oldest is forgotten before its two minutes are over. */
const ENTRIES_MAX = 4_194_304

/** `monotonic`: milliseconds that never jump. */
export function createNonces(monotonic: () => number): Nonces {
  let capacity = 64
  let hashes = new Float64Array(capacity)
  let bodies = new Float64Array(capacity)
  let times = new Float64Array(capacity)
  /** Monotonic, of this process. */
  let knownSince = new Float64Array(capacity)
  let ids = Buffer.alloc(capacity * ID_BYTES)
  // Slots are used as a ring from `head` (oldest) on; a hash maps to the newest slot that holds it.
  let head = 0
  let size = 0
  let unpacked = 0
  const slots = new Map<number, number>()

  const entryAt = (slot: number): NonceEntry => ({
    nonceHash: hashes[slot] as number,
    bodyHash: bodies[slot] as number,
    acceptedAt: times[slot] as number,
    requestId: ids.toString('latin1', slot * ID_BYTES, (slot + 1) * ID_BYTES),
  })

  const isRecent = (slot: number, atMs: number, nowMs: number): boolean =>
    Math.abs(atMs - (times[slot] as number)) <= NONCE_WINDOW_MS ||
    nowMs - (knownSince[slot] as number) <= NONCE_WINDOW_MS

  function dropOldest(): void {
    const hash = hashes[head] as number
    if (slots.get(hash) === head) slots.delete(hash)
    head = (head + 1) % capacity
    size--
    unpacked = Math.min(unpacked, size)
  }

  /** Called when the ring is full: the copies begin with the oldest. */
  function grow(): void {
    for (const [hash, slot] of slots) slots.set(hash, (slot - head + capacity) % capacity)
    const doubled = (values: Float64Array) => {
      const wider = new Float64Array(2 * capacity)
      wider.set(values.subarray(head))
      wider.set(values.subarray(0, head), capacity - head)
      return wider
    }
    hashes = doubled(hashes)
    bodies = doubled(bodies)
    times = doubled(times)
    knownSince = doubled(knownSince)
    const headBytes = head * ID_BYTES
    ids = Buffer.concat([ids.subarray(headBytes), ids.subarray(0, headBytes)], 2 * ids.length)
    head = 0
    capacity *= 2
  }

  function add(entry: NonceEntry): void {
    const nowMs = monotonic()
    while (size > 0 && !isRecent(head, entry.acceptedAt, nowMs)) dropOldest()
    if (size === capacity) {
      if (capacity < ENTRIES_MAX) grow()
      else dropOldest()
    }
    const slot = (head + size) % capacity
    hashes[slot] = entry.nonceHash
    bodies[slot] = entry.bodyHash
    times[slot] = entry.acceptedAt
    knownSince[slot] = nowMs
    ids.write(entry.requestId, slot * ID_BYTES, ID_BYTES, 'latin1')
    slots.set(entry.nonceHash, slot)
    size++
    unpacked++
  }

  return {
    find(nonceHash, atMs) {
      const slot = slots.get(nonceHash)
      return slot !== undefined && isRecent(slot, atMs, monotonic()) ? entryAt(slot) : null
    },
    add,
    takeAdded() {
      if (unpacked === 0) return null
      const packed = Buffer.alloc(unpacked * ENTRY_BYTES)
      for (let i = 0; i < unpacked; i++) {
        const slot = (head + size - unpacked + i) % capacity
        const at = i * ENTRY_BYTES
        packed.writeDoubleLE(hashes[slot] as number, at)
        packed.writeDoubleLE(bodies[slot] as number, at + 8)
        packed.writeDoubleLE(times[slot] as number, at + 16)
        ids.copy(packed, at + 24, slot * ID_BYTES, (slot + 1) * ID_BYTES)
      }
      unpacked = 0
      return packed
    },
    restore(packed) {
      const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength)
      for (let at = 0; at + ENTRY_BYTES <= bytes.length; at += ENTRY_BYTES) {
        add({
          nonceHash: bytes.readDoubleLE(at),
          bodyHash: bytes.readDoubleLE(at + 8),
          acceptedAt: bytes.readDoubleLE(at + 16),
          requestId: bytes.toString('latin1', at + 24, at + ENTRY_BYTES),
        })
      }
      unpacked = 0
    },
  }
}
