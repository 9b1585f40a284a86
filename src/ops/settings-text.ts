// The table of settings as text: what --help lists, and config/default.json.

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

export function helpText(): string {
  const lines = settings.map((s) => {
    const standard = Array.isArray(s.standard) ? s.standard.join(',') : String(s.standard)
    return `  ${environmentNames(s)[0]}\n      ${s.sentence}${standard === '' ? '' : ` Default ${standard}.`}`
  })
  return lines.join('\n')
}
