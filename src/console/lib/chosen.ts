// What a person has ticked.

import { useState } from 'preact/hooks'

export interface Chosen {
  readonly chosen: ReadonlySet<string>
  readonly toggle: (one: string) => void
  readonly clear: () => void
}

export function useChosen(first: readonly string[] = []): Chosen {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(first))
  return {
    chosen,
    toggle(one) {
      const next = new Set(chosen)
      if (!next.delete(one)) next.add(one)
      setChosen(next)
    },
    clear: () => setChosen(new Set()),
  }
}
