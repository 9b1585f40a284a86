// The nonces a partition has decided in the last two minutes (src/README.md, The protocol, 6), in flat arrays: at full load there are
// more than a million of them. Both clocks must agree that the time is over: the machine's may jump.

import { NONCE_WINDOW_MS } from '../domain/identify.ts'
import { NO_ENTRY } from '../lib/hash-index.ts'
import { createHashQueue } from '../lib/hash-queue.ts'

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
  /** Entries added since the last call, packed, for the checkpoint: in chunks that the kv takes as values. */
  takeAdded(): readonly Uint8Array[]
  /** Adds the entries of a packed chunk back. */
  restore(packed: Uint8Array): void
}

const ID_BYTES = 30
const ENTRY_BYTES = 24 + ID_BYTES
/** Of a chunk: 864 kB. */
const CHUNK_ENTRIES_MAX = 16_000
/** Above this many the oldest is forgotten before its two minutes are over. */
const ENTRIES_MAX = 4_194_304

/** What the queue's columns hold: body's hash, milliseconds of acceptance, and since when it is known by this process's monotonic clock. */
const [BODY, ACCEPTED, KNOWN] = [0, 1, 2] as const
const COLUMNS = 3

/** `monotonic`: milliseconds that never jump. */
export function createNonces(monotonic: () => number): Nonces {
  const queue = createHashQueue(COLUMNS, ID_BYTES)
  let unpacked = 0

  const isRecent = (slot: number, atMs: number, nowMs: number): boolean =>
    Math.abs(atMs - queue.number(ACCEPTED, slot)) <= NONCE_WINDOW_MS ||
    nowMs - queue.number(KNOWN, slot) <= NONCE_WINDOW_MS

  function dropOldest(): void {
    queue.dropOldest()
    unpacked = Math.min(unpacked, queue.size())
  }

  function add(entry: NonceEntry): void {
    const nowMs = monotonic()
    while (queue.size() > 0 && !isRecent(queue.slotAt(0), entry.acceptedAt, nowMs)) dropOldest()
    if (queue.size() === ENTRIES_MAX) dropOldest()
    const slot = queue.push(entry.nonceHash)
    queue.setNumber(BODY, slot, entry.bodyHash)
    queue.setNumber(ACCEPTED, slot, entry.acceptedAt)
    queue.setNumber(KNOWN, slot, nowMs)
    queue.bytes().write(entry.requestId, slot * ID_BYTES, ID_BYTES, 'latin1')
    unpacked++
  }

  /** So many of the queue, from one on. */
  function pack(from: number, count: number): Uint8Array {
    const packed = Buffer.alloc(count * ENTRY_BYTES)
    for (let i = 0; i < count; i++) {
      const slot = queue.slotAt(from + i)
      const at = i * ENTRY_BYTES
      packed.writeDoubleLE(queue.hashOf(slot), at)
      packed.writeDoubleLE(queue.number(BODY, slot), at + 8)
      packed.writeDoubleLE(queue.number(ACCEPTED, slot), at + 16)
      queue.bytes().copy(packed, at + 24, slot * ID_BYTES, (slot + 1) * ID_BYTES)
    }
    return packed
  }

  return {
    find(nonceHash, atMs) {
      const slot = queue.find(nonceHash)
      if (slot === NO_ENTRY || !isRecent(slot, atMs, monotonic())) return null
      return {
        nonceHash,
        bodyHash: queue.number(BODY, slot),
        acceptedAt: queue.number(ACCEPTED, slot),
        requestId: queue.bytes().toString('latin1', slot * ID_BYTES, (slot + 1) * ID_BYTES),
      }
    },
    add,
    takeAdded() {
      const chunks: Uint8Array[] = []
      while (unpacked > 0) {
        const count = Math.min(unpacked, CHUNK_ENTRIES_MAX)
        chunks.push(pack(queue.size() - unpacked, count))
        unpacked -= count
      }
      return chunks
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
