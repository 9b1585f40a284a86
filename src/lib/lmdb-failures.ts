// What the lmdb package says of a failed transaction, and where.

/**
 * True for the rejections that the lmdb package leaves unhandled when a transaction fails. The caller of the failed write
 * has been told, so a process-wide handler may ignore them.
 */
export function isLmdbRejection(reason: unknown): boolean {
  if (!(reason instanceof Error)) return false
  if ('commitError' in reason) return true
  const keys = Object.keys(reason)
  return keys.length === 1 && keys[0] === 'code' && typeof (reason as { code?: unknown }).code === 'number'
}

/** The error behind the one that a failed transaction rejects with. */
export async function commitCause(error: unknown): Promise<unknown> {
  const inner = (error as { commitError?: Promise<unknown> }).commitError
  if (!inner) return error
  try {
    return await inner
  } catch (cause) {
    return cause
  }
}
