// Deletes what a page is about, once that was confirmed, and goes to the page of all of its kind.

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { call } from '../lib/api.ts'
import { Confirm } from './dialog.tsx'

/** It brings a form of its own, so it must not stand within another one. */
export function DeleteButton({
  label = 'Delete',
  title,
  path,
  to,
  typed,
  children,
}: {
  readonly label?: string
  readonly title: string
  /** Of the API. */
  readonly path: string
  readonly to: string
  /** What has to be typed first. */
  readonly typed?: string
  /** What goes with it. */
  readonly children: ComponentChildren
}) {
  const [isAsking, setIsAsking] = useState(false)
  const [, go] = useLocation()
  return (
    <>
      <button type="button" class="danger" onClick={() => setIsAsking(true)}>
        {label}
      </button>
      {isAsking && (
        <Confirm
          title={title}
          action="Delete"
          {...(typed === undefined ? {} : { typed })}
          onClose={() => setIsAsking(false)}
          onConfirm={async () => {
            await call(path, { method: 'DELETE' })
            go(to)
          }}
        >
          {children}
        </Confirm>
      )}
    </>
  )
}
