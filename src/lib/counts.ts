// Counts that the threads of a process share. Each thread also notes its own share, so that what one that died had counted is taken out.

export interface SharedCounts {
  /** What all threads counted. */
  readonly all: Int32Array
  /** What this thread counted. */
  readonly own: Int32Array
}

export function newCounts(cells: number): SharedCounts {
  return joinCounts({ all: new Int32Array(new SharedArrayBuffer(4 * cells)) })
}

/** The same counts for one thread more. */
export function joinCounts({ all }: Pick<SharedCounts, 'all'>): SharedCounts {
  return { all, own: new Int32Array(new SharedArrayBuffer(4 * all.length)) }
}

/** Counts and returns how many all threads had counted before. */
export function addCount({ all, own }: SharedCounts, cell: number, by: number): number {
  own[cell] = (own[cell] as number) + by
  return Atomics.add(all, cell, by)
}

/** The thread whose share this is counts nothing any more. */
export function takeOut({ all, own }: SharedCounts): void {
  for (const [cell, counted] of own.entries()) if (counted !== 0) Atomics.sub(all, cell, counted)
  own.fill(0)
}

export const readCount = ({ all }: SharedCounts, cell: number): number => Atomics.load(all, cell)
