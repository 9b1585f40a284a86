// What stands where there is nothing to show: reading, refused, or empty.

import type { ComponentChildren } from 'preact'
import { sentenceOf } from '../lib/act.ts'
import type { Loaded } from '../lib/load.ts'

export function Problem({ error, retry }: { readonly error: Error | null; readonly retry?: () => void }) {
  if (error === null) return null
  return (
    <div class="problem row spread" role="alert">
      <span>{sentenceOf(error)}</span>
      {retry && (
        <button type="button" class="slim" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h3>{title}</h3>
      <div class="quiet">{children}</div>
    </div>
  )
}

export function Reading() {
  return (
    <p class="quiet empty" role="status">
      Reading…
    </p>
  )
}

/**
 * Shows `children` of what was read; before that that it is being read, and why it was not. What was read stays, with what was typed into
 * it, when it cannot be read again.
 */
export function Shown<T>({
  of: loaded,
  children,
}: {
  readonly of: Loaded<T>
  readonly children: (data: T) => ComponentChildren
}) {
  const problem = loaded.error === null ? null : <Problem error={loaded.error} retry={loaded.reload} />
  if (loaded.data === undefined) return problem ?? <Reading />
  return (
    <>
      {problem}
      {children(loaded.data)}
    </>
  )
}
