// What an operator could mend while everything serves: what is so, and what to do.

import type { AdviceItem } from '../lib/readiness.ts'

export function AdviceList({ of: all }: { readonly of: readonly AdviceItem[] }) {
  return (
    <>
      {all.map(({ code, says, mend }) => (
        <p key={code} class="hint">
          {says.charAt(0).toUpperCase() + says.slice(1)}. <strong>{mend}</strong>
        </p>
      ))}
    </>
  )
}
