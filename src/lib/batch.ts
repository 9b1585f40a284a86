// Natural batching: items are gathered while the previous batch is being written, and every caller waits for its own.
// No timer: an idle writer takes what came in one turn at once.

export interface Batcher<T> {
  /** Resolves when the batch that held the item is written; rejects with the writer's error. */
  add(item: T, bytes: number): Promise<void>
}

interface Batch<T> {
  items: readonly T[]
  bytes: number
  readonly done: Promise<void>
  readonly settle: (error: unknown, failed: boolean) => void
}

function createBatch<T>(): Batch<T> {
  let settle: Batch<T>['settle'] = () => undefined
  const done = new Promise<void>((resolve, reject) => {
    settle = (error, failed) => (failed ? reject(error) : resolve())
  })
  return { items: [], bytes: 0, done, settle }
}

/** What is being written is the writer's: it may be large, and nobody else needs it. */
function taken<T>(batch: Batch<T>): readonly T[] {
  const { items } = batch
  batch.items = []
  return items
}

export interface BatchLimits {
  readonly itemsMax: number
  readonly bytesMax: number
  readonly inFlightMax: number
  /** Runs what it is given when the turn is over, whose items share a batch. Default: the microtask. */
  readonly atEndOfTurn?: (run: () => void) => void
}

export function createBatcher<T>(write: (items: readonly T[]) => Promise<unknown>, limits: BatchLimits): Batcher<T> {
  const { atEndOfTurn = queueMicrotask } = limits
  const waiting: Batch<T>[] = []
  let writing = 0

  async function writeNext(): Promise<void> {
    const batch = waiting.shift()
    if (batch === undefined) return
    writing++
    try {
      await write(taken(batch))
      batch.settle(null, false)
    } catch (error) {
      batch.settle(error, true)
    }
    writing--
    void writeNext()
  }

  return {
    add(item, bytes) {
      let batch = waiting.at(-1)
      const full =
        batch !== undefined && (batch.items.length >= limits.itemsMax || batch.bytes + bytes > limits.bytesMax)
      if (batch === undefined || full) {
        batch = createBatch<T>()
        waiting.push(batch)
        // The write starts after this turn, so that everything that arrived in it shares the batch.
        if (writing < limits.inFlightMax)
          atEndOfTurn(() => {
            if (writing < limits.inFlightMax) void writeNext()
          })
      }
      ;(batch.items as T[]).push(item)
      batch.bytes += bytes
      return batch.done
    },
  }
}
