// Works that begin and end together.

/** Runs them until `signal` aborts or one of them ends, which ends the others too. Rejects with the first failure. */
export async function runGroup(
  signal: AbortSignal,
  works: readonly ((signal: AbortSignal) => Promise<void>)[],
): Promise<void> {
  const ending = new AbortController()
  const end = () => ending.abort()
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  try {
    const running = works.map((work) => work(ending.signal).finally(end))
    await Promise.allSettled(running)
    await Promise.all(running)
  } finally {
    signal.removeEventListener('abort', end)
  }
}
