// Copying: a text, a request for a terminal, or a secret that is shown once.

import { useState } from 'preact/hooks'
import { curlOf, type RequestOptions } from '../lib/api.ts'

const SAID_MS = 2_000

export function CopyButton({ text, label = 'Copy' }: { readonly text: () => string; readonly label?: string }) {
  const [isCopied, setIsCopied] = useState(false)
  async function copy(): Promise<void> {
    await navigator.clipboard.writeText(text())
    setIsCopied(true)
    setTimeout(() => setIsCopied(false), SAID_MS)
  }
  return (
    <button type="button" class="slim" onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? 'Copied' : label}</span>
    </button>
  )
}

/** Every page says how to ask the same of the API. */
export function CopyCurl({ path, ask = {} }: { readonly path: string; readonly ask?: RequestOptions }) {
  return <CopyButton label="Copy as curl" text={() => curlOf(path, ask)} />
}

export function Secret({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div class="secret" role="status">
      <p>
        <strong>{name}</strong> is shown this once.
      </p>
      <div class="row spread">
        <code>{value}</code>
        <CopyButton text={() => value} />
      </div>
    </div>
  )
}

export function Code({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <figure class="stack">
      <div class="row spread">
        <figcaption class="label">{label}</figcaption>
        <CopyButton text={() => text} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <pre tabIndex={0}>{text}</pre>
    </figure>
  )
}
