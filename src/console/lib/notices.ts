// What was done, said for some seconds at the edge of the page and to screen readers.

import { signal } from '@preact/signals'

const SHOWN_MS = 6_000
export interface Notice {
  readonly id: number
  readonly text: string
}
export const notices = signal<readonly Notice[]>([])
let last = 0

export function notify(text: string): void {
  last += 1
  const notice = { id: last, text }
  notices.value = [...notices.value, notice]
  setTimeout(() => {
    notices.value = notices.value.filter(({ id }) => id !== notice.id)
  }, SHOWN_MS)
}
