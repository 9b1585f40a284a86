// A native dialog: it holds the focus, Escape closes it, and focus returns to what opened it.

import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { useAct } from '../lib/act.ts'
import { FormEnd } from './form-end.tsx'

export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  )
}

export interface ConfirmProps {
  readonly title: string
  readonly children: ComponentChildren
  readonly action: string
  /** What has to be typed first. */
  readonly typed?: string
  readonly onClose: () => void
  readonly onConfirm: () => Promise<unknown>
}

/** Asks before something that cannot be taken back. */
export function Confirm({ title, children, action, typed, onClose, onConfirm }: ConfirmProps) {
  const [text, setText] = useState('')
  const act = useAct()
  const id = useId()
  const confirm = async (event: Event) => {
    event.preventDefault()
    if (await act.run(onConfirm)) onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={confirm}>
        <div>{children}</div>
        {typed !== undefined && (
          <div class="field">
            <label for={id}>
              Type <code>{typed}</code> to confirm
            </label>
            <input id={id} value={text} autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />
          </div>
        )}
        <FormEnd
          act={act}
          action={action}
          tone="danger"
          isReady={typed === undefined || text === typed}
          onCancel={onClose}
        />
      </form>
    </Dialog>
  )
}
