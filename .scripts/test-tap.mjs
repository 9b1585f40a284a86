// What a test file gets when it imports `tap` in a process that runs several files: a root of its own. Each file asks under its
// own address (`?of=`), so that each gets another one.
import { register } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'

const ROOTS = Symbol.for('fingerpost.tests')

/** Roots by the address of their file. */
export const roots = globalThis[ROOTS] ?? new Map()
globalThis[ROOTS] = roots

/** From now on test files that are imported find their root in `roots`. */
export const divide = () => register(import.meta.url)

/** The module hook of `register`. */
export function resolve(specifier, context, next) {
  const { parentURL = '' } = context
  if (specifier !== 'tap' || !parentURL.endsWith('.test.js')) return next(specifier, context)
  return { url: `${import.meta.url.split('?')[0]}?of=${encodeURIComponent(parentURL)}`, shortCircuit: true }
}

const of = new URL(import.meta.url).searchParams.get('of')
if (of !== null && isMainThread && !roots.has(of)) throw new Error(`${fileURLToPath(of)} has no root`)

// biome-ignore lint/style/noDefaultExport: it stands in for the default export of tap
export default of === null ? undefined : roots.get(of)
