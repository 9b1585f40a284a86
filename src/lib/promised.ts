// Promises that are settled from outside, as Promise.withResolvers makes them where Node.js has that, and work that is done once.

export interface Promised<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: Error) => void
}

/** A rejection that nobody waits for is no failure of the process. */
export function promised<T>(): Promised<T> {
  let resolve: (value: T) => void = () => undefined
  let reject: (error: Error) => void = () => undefined
  const promise = new Promise<T>((done, failed) => {
    resolve = done
    reject = failed
  })
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}

/** Does the work when it is first asked for, and again only where it failed. */
export function untilDone<A extends readonly unknown[], T>(
  work: (...args: A) => Promise<T>,
): (...args: A) => Promise<T> {
  let doing: Promise<T> | null = null
  return (...args) => {
    doing ??= work(...args).catch((error) => {
      doing = null
      throw error
    })
    return doing
  }
}
