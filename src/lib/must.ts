// Invariants stated in code: a broken one crashes the request or the record, with a sentence that says which.

export function must<T>(value: T | null | undefined, what = 'value'): T {
  if (value === null || value === undefined) throw new Error(`expected ${what}`)
  return value
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(message)
}
