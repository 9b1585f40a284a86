// Reads the part of YAML that compose.yml and the manifests of Kubernetes are written in: maps, lists of scalars and of maps, anchors
// and merges. Anything else throws, so that a file is never half understood.

export type Yaml = string | readonly Yaml[] | { readonly [key: string]: Yaml }
export type YamlMap = { readonly [key: string]: Yaml }

interface Line {
  readonly indent: number
  readonly text: string
  readonly at: number
}

const KEY = /^([A-Za-z0-9_./-]+|<<):(?: +(.*))?$/

/** Each document of a file that may hold several, between lines of `---`. */
export const readYamlDocuments = (text: string): YamlMap[] => text.split(/^---$/m).map(readYaml)

/** Throws with the number of the first line that it does not understand. */
export function readYaml(text: string): YamlMap {
  const anchors = new Map<string, Yaml>()
  const lines: Line[] = []
  for (const [index, raw] of text.split('\n').entries()) {
    const trimmed = raw.trim()
    if (trimmed === '' || trimmed.startsWith('#')) continue
    if (raw.includes('\t')) throw new Error(`line ${index + 1}: a tab`)
    lines.push({ indent: raw.length - raw.trimStart().length, text: trimmed, at: index + 1 })
  }
  let next = 0
  const peek = (): Line | undefined => lines[next]
  const fail = (line: Line, why: string): never => {
    throw new Error(`line ${line.at}: ${why}: ${line.text}`)
  }

  function block(indent: number): Yaml {
    const first = peek()
    return first?.text.startsWith('- ') ? list(indent) : map(indent)
  }

  function list(indent: number): Yaml {
    const items: Yaml[] = []
    for (let line = peek(); line?.indent === indent && line.text.startsWith('- '); line = peek()) {
      const rest = line.text.slice(2).trim()
      const isMap = !/^['"]/.test(rest) && KEY.test(rest)
      if (isMap) {
        // Its first member stands behind the dash, the others below it.
        lines[next] = { indent: indent + 2, text: rest, at: line.at }
        items.push(map(indent + 2))
      } else {
        next += 1
        items.push(scalar(rest, line))
      }
    }
    return items
  }

  function map(indent: number): YamlMap {
    const own: Record<string, Yaml> = {}
    let merged: YamlMap = {}
    for (let line = peek(); line?.indent === indent; line = peek()) {
      const [, key, rest = ''] = KEY.exec(line.text) ?? fail(line, 'no key')
      if (key === undefined || key in own) return fail(line, 'a key twice')
      next += 1
      const value = member(rest, indent, line)
      if (key !== '<<') own[key] = value
      else if (typeof value === 'object' && !Array.isArray(value)) merged = { ...merged, ...(value as YamlMap) }
      else fail(line, 'merges what is no map')
    }
    return { ...merged, ...own }
  }

  function member(rest: string, indent: number, line: Line): Yaml {
    const anchor = /^&(\w[\w-]*)$/.exec(rest)?.[1]
    if (rest !== '' && anchor === undefined) return scalar(rest, line)
    const below = peek()
    const value = below !== undefined && below.indent > indent ? block(below.indent) : ''
    if (anchor !== undefined) anchors.set(anchor, value)
    return value
  }

  function scalar(text: string, line: Line): Yaml {
    if (text.startsWith('*')) return anchors.get(text.slice(1)) ?? fail(line, 'an unknown anchor')
    if (text.startsWith('[')) {
      if (!text.endsWith(']')) return fail(line, 'a list over several lines')
      const items = text.slice(1, -1).match(/"[^"]*"|[^,\s][^,]*/g) ?? []
      return items.map((item) => scalar(item.trim(), line))
    }
    if (text.startsWith('"') || text.startsWith("'")) {
      const quote = text[0] as string
      if (text.length < 2 || !text.endsWith(quote) || text.slice(1, -1).includes(quote)) return fail(line, 'odd quotes')
      if (quote === '"' && text.includes('\\')) return fail(line, 'an escape')
      return text.slice(1, -1)
    }
    if (/^[&{|>!%@`]/.test(text) || text.includes(' #') || /: /.test(text.replace(/\$\{[^}]*\}/g, ''))) {
      return fail(line, 'not understood')
    }
    return text
  }

  const document = map(0)
  const left = peek()
  if (left !== undefined) fail(left, 'not understood')
  return document
}
