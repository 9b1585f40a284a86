// The table of what was collected: every component in plain words, its value and how long it took.

import type { CollectedComponent, Components } from '../types.ts'
import { element, say } from './dom.ts'
import { groups } from './vocabulary.ts'

const valueCharsMax = 160

export function showComponents(components: Components): void {
  const known = new Set(groups.flatMap((group) => group.components.map(([name]) => name)))
  const others = Object.keys(components).filter((name) => !known.has(name))
  const all = others.length
    ? [...groups, { title: 'Others', components: others.map((name) => [name, ''] as const) }]
    : groups
  const rows: HTMLElement[] = []
  for (const group of all) {
    const present = group.components.filter(([name]) => components[name])
    if (present.length === 0) continue
    const heading = cell('th', group.title)
    heading.setAttribute('scope', 'colgroup')
    heading.setAttribute('colspan', '3')
    rows.push(row([heading], 'group'))
    for (const [name, meaning] of present) {
      const component = components[name]
      if (component) rows.push(componentRow(name, meaning, component))
    }
  }
  element('components').replaceChildren(...rows)
  const bytes = new TextEncoder().encode(JSON.stringify(components)).length
  const count = Object.keys(components).length
  say(
    'collected-summary',
    `${count} traits, ${(bytes / 1024).toFixed(1)} KiB in all. Sent along with them: signs of automation, this page’s address and the token.`,
  )
}

function componentRow(name: string, meaning: string, component: CollectedComponent): HTMLElement {
  const title = cell('th', meaning || name)
  title.setAttribute('scope', 'row')
  if (meaning) title.append(cell('small', name))
  const failed = 'error' in component
  const text = failed ? explainError(component.error) : showValue(component.value)
  const value = cell('td', text.length > valueCharsMax ? `${text.slice(0, valueCharsMax)}…` : text)
  value.className = failed || component.value === null ? 'value missing' : 'value'
  const time = cell(
    'td',
    component.ms === undefined ? '' : `${component.ms < 10 ? component.ms : Math.round(component.ms)} ms`,
  )
  time.className = 'number'
  return row([title, value, time])
}

function explainError(error: string): string {
  return error === 'timeout' ? 'not ready in time' : `not read: ${error}`
}

function showValue(value: unknown): string {
  if (value === null) return 'not offered by this browser'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function row(cells: HTMLElement[], className = ''): HTMLElement {
  const made = document.createElement('tr')
  if (className) made.className = className
  made.append(...cells)
  return made
}

function cell(tag: string, text: string): HTMLElement {
  const made = document.createElement(tag)
  made.textContent = text
  return made
}
