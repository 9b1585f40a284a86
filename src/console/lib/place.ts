// Where the console is: its path and what the address says of a page, so that every state can be linked to and gone back to.

import { useLocation, useSearch } from 'wouter-preact'

export const CONSOLE_BASE = '/console'

/** What is asked of the page in its address, and how to ask otherwise; an empty text takes a name away. */
export function usePlace(): readonly [
  Readonly<Record<string, string>>,
  (changes: Readonly<Record<string, string>>) => void,
] {
  const [path, go] = useLocation()
  const asked = Object.fromEntries(new URLSearchParams(useSearch()))
  return [
    asked,
    (changes) => {
      const next = new URLSearchParams()
      for (const [name, value] of Object.entries({ ...asked, ...changes })) if (value !== '') next.set(name, value)
      const text = next.toString()
      go(text === '' ? path : `${path}?${text}`, { replace: true })
    },
  ]
}

/** The page of whatever has this id; null for what is no id of ours. */
export function pageOfId(text: string): string | null {
  const id = text.trim()
  const found = PAGES.find(([pattern]) => pattern.test(id))
  return found === undefined ? null : `${found[1]}/${encodeURIComponent(id)}`
}

const PAGES: readonly (readonly [RegExp, string])[] = [
  [/^req_[0-9A-HJKMNP-TV-Z]{26}$/, '/events'],
  [/^pv_[0-9A-Za-z]{20}$/, '/visitors'],
  [/^rul_[0-9A-Za-z]{20}$/, '/rules'],
  [/^lst_[0-9A-Za-z]{20}$/, '/lists'],
  [/^whk?_[0-9A-Za-z]{20}$/, '/webhooks'],
  [/^alr_[0-9A-Za-z]{20}$/, '/alerts'],
]
