// Copying: a text, a request for a terminal, or a secret that is shown once.

import { useState } from 'preact/hooks'
import { curlOf, type RequestOptions } from '../lib/api.ts'

const SAID_MS = 2_000

export function CopyButton({ text, label = 'Copy' }: { readonly text: () => string; readonly label?: string }) {
  const [said, setSaid] = useState<string | null>(null)
  async function copy(): Promise<void> {
    setSaid(await copied(text()))
    setTimeout(() => setSaid(null), SAID_MS)
  }
  return (
    <button type="button" class="slim" onClick={() => void copy()}>
      <span aria-live="polite">{said ?? label}</span>
    </button>
  )
}

/** What came of it. Browsers have no clipboard for pages that came over plain HTTP, and people may refuse it. */
async function copied(text: string): Promise<string> {
  if (navigator.clipboard === undefined) return 'Copying needs HTTPS'
  return navigator.clipboard.writeText(text).then(
    () => 'Copied',
    () => 'The browser refused',
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
