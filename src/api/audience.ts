// How many may listen to streams, or take a long file, at once: each is a share of what one process has.

import { ApiError } from '../domain/errors.ts'

/** Per process. */
const LISTENERS_MAX = 50
/** So that one workspace cannot take them all. */
const LISTENERS_PER_WORKSPACE_MAX = 10
const RETRY_AFTER_SECONDS = 5

export interface Audience {
  /** Throws ApiError unavailable when there are as many as may be. */
  admit(workspace: string): void
  /** Counts one more, until the function it returns is called. */
  join(workspace: string): () => void
}

export function openAudience(
  { max, perWorkspaceMax } = { max: LISTENERS_MAX, perWorkspaceMax: LISTENERS_PER_WORKSPACE_MAX },
): Audience {
  let listeners = 0
  const ofWorkspace = new Map<string, number>()
  const count = (workspace: string, by: number): void => {
    listeners += by
    const left = (ofWorkspace.get(workspace) ?? 0) + by
    if (left === 0) ofWorkspace.delete(workspace)
    else ofWorkspace.set(workspace, left)
  }
  return {
    admit(workspace) {
      const own = ofWorkspace.get(workspace) ?? 0
      if (listeners >= max || own >= perWorkspaceMax) {
        throw new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })
      }
    },
    join(workspace) {
      count(workspace, 1)
      return () => count(workspace, -1)
    },
  }
}
