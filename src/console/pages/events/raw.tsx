// What the API answers, as it is.

import { CopyButton } from '../../ui/copy.tsx'

export function Raw({ of: value }: { readonly of: unknown }) {
  const text = JSON.stringify(value, null, 2)
  return (
    <details class="card">
      <summary>As JSON</summary>
      <p class="row">
        <CopyButton text={() => text} />
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <pre tabIndex={0}>{text}</pre>
    </details>
  )
}
