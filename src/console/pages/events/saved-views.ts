// Searches that were given a name, kept in this browser.

import type { Search } from './filters.tsx'

const KEY = 'fingerpost.views'
const VIEWS_MAX = 30
const NAME_CHARS_MAX = 60

export interface SavedView {
  readonly name: string
  readonly search: Search
}

const isView = (one: unknown): one is SavedView =>
  typeof one === 'object' && one !== null && 'name' in one && typeof one.name === 'string' && 'search' in one

/** What was kept; a text that is none of ours counts as nothing. */
export function readViews(): readonly SavedView[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(found) ? found.filter(isView) : []
  } catch {
    return []
  }
}

/** The newest first; one of the same name is replaced. */
export function keepView(name: string, search: Search): readonly SavedView[] {
  const view = { name: name.trim().slice(0, NAME_CHARS_MAX), search }
  const views = [view, ...readViews().filter((one) => one.name !== view.name)].slice(0, VIEWS_MAX)
  localStorage.setItem(KEY, JSON.stringify(views))
  return views
}

export function dropView(name: string): readonly SavedView[] {
  const views = readViews().filter((one) => one.name !== name)
  localStorage.setItem(KEY, JSON.stringify(views))
  return views
}
