// What of a failure fits into one line: what it says and what was behind it, without stacks.

const CAUSES_MAX = 4

/** `NATS cannot be reached at nats://a:4222: connect ECONNREFUSED 10.0.0.1:4222`. */
export function reasonOf(error: unknown): string {
  const said: string[] = []
  for (let at = error, depth = 0; at instanceof Error && depth < CAUSES_MAX; at = at.cause, depth++) {
    // Of several addresses of one name each failed for a reason of its own.
    const parts = at instanceof AggregateError && at.message === '' ? at.errors.map(textOf) : [textOf(at)]
    for (const part of parts) if (!said.some((other) => other.includes(part))) said.push(part)
  }
  return said.length === 0 ? String(error) : said.join(': ')
}

const textOf = (error: unknown): string => {
  const { message, name } = error instanceof Error ? error : { message: String(error), name: '' }
  return (message || name).replaceAll(/\s*\n\s*/g, ' ')
}

/** What the system refused, such as EACCES, EEXIST or ENOSPC; LMDB gives its numbers. */
export function isSystemFailure(error: unknown): error is Error {
  if (!(error instanceof Error)) return false
  const { code, syscall } = error as NodeJS.ErrnoException
  return (typeof syscall === 'string' && /^E[A-Z0-9]+$/.test(String(code))) || typeof (code as unknown) === 'number'
}
