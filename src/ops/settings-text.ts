// The table of settings as text: what `fingerpost help settings` lists, and config/default.json.

import { environmentNames } from '../config.ts'
import { SETTINGS, type Setting, type Value } from '../settings.ts'

const settings: readonly Setting[] = SETTINGS

/** As JSON by section: the content of config/default.json. */
export function defaultsJson(): string {
  const sections: Record<string, Record<string, Value>> = {}
  for (const { name, standard } of settings) {
    const [section, member] = name.split('.') as [string, string]
    sections[section] = { ...sections[section], [member]: standard }
  }
  return `${JSON.stringify(sections, null, 2)}\n`
}

const sectionOf = (name: string): string => name.split('.')[0] ?? name

export const sectionNames = (): string[] => [...new Set(settings.map(({ name }) => sectionOf(name)))]

/** Every setting under its section, or those of one section. */
export function settingsText(only?: string): string {
  const parts = sectionNames()
    .filter((section) => only === undefined || section === only)
    .map((section) => [section, ...settings.filter(({ name }) => sectionOf(name) === section).map(linesOf)].join('\n'))
  return parts.join('\n\n')
}

function linesOf(setting: Setting): string {
  const { standard, sentence } = setting
  const text = Array.isArray(standard) ? standard.join(',') : String(standard)
  return `  ${environmentNames(setting)[0]}\n      ${sentence}${text === '' ? '' : ` Default ${text}.`}`
}
