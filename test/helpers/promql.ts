// Which metrics and labels an expression of Prometheus names: enough of its grammar to hold the names against what is measured.

export interface Selector {
  readonly name: string
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[]
}

const STRING = /"(?:[^"\\]|\\.)*"/g
const SELECTOR = /\b((?:fingerpost|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g
const MATCHER = /(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g
const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g

export function selectorsOf(expression: string): Selector[] {
  return Array.from(expression.matchAll(SELECTOR), ([, name = '', matchers = '']) => ({
    name,
    matchers: Array.from(matchers.matchAll(MATCHER), ([, label = '', operator = '', value = '']) => ({
      label,
      operator,
      value,
    })),
  }))
}

/** Labels that are grouped by. */
export function groupingOf(expression: string): string[] {
  return Array.from(expression.replace(STRING, '""').matchAll(GROUPING), ([, labels = '']) =>
    labels.split(',').map((label) => label.trim()),
  )
    .flat()
    .filter((label) => label !== '')
}
