// The partition that the hardware of a visit without a token names, read from the bytes of its body before it is parsed: a guess that
// may be wrong, and is never needed. Only the components the hardware key is made of are parsed, in the spelling of the SDK.

import type { Parsers } from '../identity/parsers.ts'
import { hardwareKey, hardwarePartition } from '../identity/routing.ts'
import type { Caller } from '../records/auth.ts'

const MODEL_HEADER = 'sec-ch-ua-model'
const VALUE = '{"value":'
const OPEN = '{'.charCodeAt(0)
const CLOSE = '}'.charCodeAt(0)
/** A longer one is no browser's. */
const COMPONENT_BYTES_MAX = 4_096
/** What an app says of its device is not spelled by the SDK of browsers. */
const NATIVE = Buffer.from('"native":')

const indexIn = (body: Uint8Array, what: Buffer): number => Buffer.prototype.indexOf.call(body, what)

/** `{value, ms}`, or undefined where it is not there; throws where it is spelled otherwise, or holds a brace in a text. */
function componentIn(body: Uint8Array, lead: Buffer): { readonly value?: unknown } | undefined {
  const at = indexIn(body, lead)
  if (at < 0) return undefined
  const from = at + lead.length - VALUE.length
  const last = Math.min(body.length, from + COMPONENT_BYTES_MAX)
  let depth = 0
  let to = from
  do {
    if (body[to] === OPEN) depth++
    else if (body[to] === CLOSE) depth--
    to++
  } while (depth > 0 && to < last)
  return JSON.parse(Buffer.prototype.utf8Slice.call(body, from, to))
}

/** What the hardware key reads of a browser; each is parsed when it is asked for, as most keys need two or three. */
const NAMES = ['webGlBasics', 'touchSupport', 'userAgentData', 'screenResolution', 'languages', 'userAgent']
const READING = Object.defineProperties(
  {},
  Object.fromEntries(
    NAMES.map((name) => {
      const lead = Buffer.from(`"${name}":${VALUE}`)
      return [
        name,
        {
          get(this: { readonly body: Uint8Array }) {
            return componentIn(this.body, lead)
          },
        },
      ]
    }),
  ),
)

/** null: the bytes do not show it. `header` reads a header by its name in lower case. */
export function partitionSeemingIn(
  body: Uint8Array,
  { workspace, env }: Pick<Caller, 'workspace' | 'env'>,
  header: (name: string) => string,
  parsers: Parsers,
  partitions: number,
): number | null {
  if (indexIn(body, NATIVE) >= 0) return null
  const components = Object.assign(Object.create(READING), { body })
  const headers = { [MODEL_HEADER]: header(MODEL_HEADER) }
  try {
    const hardware = hardwareKey({ components }, headers, header('user-agent'), parsers)
    return hardwarePartition(workspace.id, env, hardware, partitions)
  } catch {
    return null
  }
}
