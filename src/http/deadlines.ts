// Deadlines of many requests for the price of none: one queue per duration, so that only its head can be due.

export interface RequestDeadline {
  /** Monotonic milliseconds; Infinity while not queued. */
  dueMs: number
  before: RequestDeadline
  after: RequestDeadline
  expire(this: RequestDeadline): void
}

export interface DeadlineQueue {
  add(deadline: RequestDeadline, nowMs: number): void
}

/** `onFirst` is called with the first deadline, and with the first one after a sweep that left none. */
export function openDeadlines(onFirst: () => void) {
  const queues = new Map<number, RequestDeadline>()
  let isSwept = false

  return {
    /** The queue of all deadlines of this length. */
    queue(durationMs: number): DeadlineQueue {
      let head = queues.get(durationMs)
      if (head === undefined) {
        head = emptyDeadline(() => {})
        queues.set(durationMs, head)
      }
      const ring = head
      return {
        add: (deadline, nowMs) => {
          deadline.dueMs = nowMs + durationMs
          deadline.before = ring.before
          deadline.after = ring
          ring.before.after = deadline
          ring.before = deadline
          if (isSwept) return
          isSwept = true
          onFirst()
        },
      }
    },

    /** Expires what is due; false: nothing is left to be swept. */
    sweep(nowMs: number): boolean {
      for (const ring of queues.values()) {
        while (ring.after !== ring && ring.after.dueMs <= nowMs) {
          const due = ring.after
          removeDeadline(due)
          due.expire()
        }
      }
      isSwept = [...queues.values()].some((ring) => ring.after !== ring)
      return isSwept
    },
  }
}

export function emptyDeadline(expire: () => void): RequestDeadline {
  const deadline = { dueMs: Number.POSITIVE_INFINITY, expire } as RequestDeadline
  deadline.before = deadline
  deadline.after = deadline
  return deadline
}

/** Harmless when it is not queued. */
export function removeDeadline(deadline: RequestDeadline): void {
  deadline.before.after = deadline.after
  deadline.after.before = deadline.before
  deadline.before = deadline
  deadline.after = deadline
}
