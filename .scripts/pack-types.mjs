// Writes src/client/types.ts anew with plain interfaces where that file takes types from the schemas of the API: whoever installs the
// client gets neither the schemas nor the library that reads types from them.
import { readFileSync } from 'node:fs'
import { rolldown } from 'rolldown'

const SHARED = 'x-shared'

/** The text of a types.ts that imports nothing. */
export async function plainTypes(file) {
  const text = readFileSync(file, 'utf8')
  const named = [...text.matchAll(/^export type (\w+) = Of<typeof (?:(\w+)\.)?(\w+)>$/gm)]
  const imports = text.match(/^import type .*$/gm) ?? []
  const schemas = await load(file, imports, named)
  const printer = openPrinter()
  for (const [, name] of named) printer.add(name, schemas[name])
  const [head] = text.split('\n')
  const rest = text
    .replace(/^import type .*\n/gm, '')
    .replace(/^\/\*\*[^\n]*\*\/\ntype Of<.*\n/gm, '')
    .replace(/^export type (\w+) = Of<.*\n/gm, '')
    .replace(head, '')
  return `${head}\n\n${printer.text()}\n${rest.trim()}\n`
}

/** The schemas by the names the client gives them. */
async function load(file, imports, named) {
  const all = imports.map((line) => line.replace('import type', 'import')).join('\n')
  const exported = named.map(
    ([, name, space, member]) => `${name}: ${space === undefined ? member : `${space}.${member}`}`,
  )
  const entry = `${all}\nexport const schemas = { ${exported.join(', ')} }\n`
  const bundle = await rolldown({
    input: file,
    platform: 'node',
    tsconfig: false,
    // In the place of the file, so that what it imports is found.
    plugins: [{ name: 'schemas', load: (id) => (id === file ? { code: entry, moduleType: 'ts' } : null) }],
  })
  const { output } = await bundle.generate({ format: 'esm' })
  await bundle.close()
  const { schemas } = await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`)
  return schemas
}

function openPrinter() {
  const declared = new Map()
  const named = new Map()

  /** By its content: a schema that is used with another description is another object. */
  const keyOf = ({ description: _, [SHARED]: name, ...schema }) => name ?? JSON.stringify(schema)

  function add(name, schema) {
    named.set(keyOf(schema), name)
    declare(name, schema)
  }

  function declare(name, schema) {
    if (declared.has(name)) return
    declared.set(name, '')
    const text = bodyOf(schema, 0)
    const isObject = text.startsWith('{') && !isUnion(text)
    const doc = comment(schema.description, 0)
    declared.set(name, `${doc}export ${isObject ? `interface ${name} ${text}` : `type ${name} = ${text}`}\n`)
  }

  function typeOf(schema, depth) {
    if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1)
    const shared = schema[SHARED] ?? named.get(keyOf(schema))
    if (shared === undefined) return bodyOf(schema, depth)
    const name = named.get(keyOf(schema)) ?? shared
    declare(name, schema)
    return name
  }

  function bodyOf(schema, depth) {
    if (schema.const !== undefined) return literal(schema.const)
    if (schema.enum !== undefined) return union(schema.enum.map(literal))
    const options = schema.anyOf ?? schema.oneOf
    if (options !== undefined) return union(options.map((option) => typeOf(option, depth)))
    if (Array.isArray(schema.type)) return union(schema.type.map((type) => bodyOf({ ...schema, type }, depth)))
    if (schema.type === 'array') return arrayOf(schema.items === undefined ? 'unknown' : typeOf(schema.items, depth))
    if (schema.type === 'object') return objectOf(schema, depth)
    if (schema.type === 'integer') return 'number'
    return schema.type ?? 'unknown'
  }

  function objectOf({ properties, required = [], additionalProperties, patternProperties = {} }, depth) {
    const values = Object.values(patternProperties)[0] ?? additionalProperties
    if (properties === undefined) {
      return `Record<string, ${typeof values === 'object' ? typeOf(values, depth) : 'unknown'}>`
    }
    const pad = '  '.repeat(depth + 1)
    const lines = Object.entries(properties).map(([name, schema]) => {
      const mark = required.includes(name) ? '' : '?'
      const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`
      return `${comment(schema.description, depth + 1)}${pad}${key}${mark}: ${typeOf(schema, depth + 1)}\n`
    })
    return lines.length === 0 ? 'Record<string, never>' : `{\n${lines.join('')}${'  '.repeat(depth)}}`
  }

  return { add, text: () => [...declared.values()].join('') }
}

const literal = (value) => (typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : String(value))
const union = (types) => [...new Set(types)].join(' | ')
/** Read-only, so that a request may hold a constant. */
const arrayOf = (type) => (isUnion(type) ? `readonly (${type})[]` : `readonly ${type}[]`)

/** Of bars outside of braces. */
function isUnion(type) {
  const outside = type.replace(/\{[^{}]*\}/g, '')
  return outside === type ? type.includes(' | ') : isUnion(outside)
}

function comment(text, depth) {
  if (text === undefined) return ''
  const pad = '  '.repeat(depth)
  if (text.includes('*/')) throw new Error(`a description ends a comment: ${text}`)
  return `${pad}/** ${text} */\n`
}
