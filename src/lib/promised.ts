// A promise that is settled from outside, as Promise.withResolvers makes it where Node.js has that.

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
