// The partition that the hardware of a visit without a token names, read from the bytes of its body before it is parsed: a guess that
// may be wrong, and is never needed. Only the components the hardware key is made of are parsed, in the spelling of the SDK.

import type { IdentifyBody } from '../domain/identify.ts'
import type { Parsers } from '../identity/parsers.ts'
import { hardwareKey, hardwarePartition } from '../identity/routing.ts'
import type { Caller } from '../records/auth.ts'

const MODEL_HEADER = 'sec-ch-ua-model'
const VALUE = '{"value":'
const OPEN = '{'.charCodeAt(0)
const CLOSE = '}'.charCodeAt(0)
/** A longer one is no browser's. */
const COMPONENT_BYTES_MAX = 4_096
const leadOf = (name: string): Buffer => Buffer.from(`"${name}":${VALUE}`)
const [GPU, TOUCH, HINTS, SCREEN, LANGUAGES, USER_AGENT] = [
  'webGlBasics',
  'touchSupport',
  'userAgentData',
  'screenResolution',
  'languages',
  'userAgent',
].map(leadOf) as [Buffer, Buffer, Buffer, Buffer, Buffer, Buffer]
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

/** null: the bytes do not show it. `header` reads a header by its name in lower case. */
export function partitionSeemingIn(
  body: Uint8Array,
  { workspace, env }: Pick<Caller, 'workspace' | 'env'>,
  header: (name: string) => string,
  parsers: Parsers,
  partitions: number,
): number | null {
  if (indexIn(body, NATIVE) >= 0) return null
  // Each is looked for when it is asked for: most keys need two or three.
  const components = {
    get webGlBasics() {
      return componentIn(body, GPU)
    },
    get touchSupport() {
      return componentIn(body, TOUCH)
    },
    get userAgentData() {
      return componentIn(body, HINTS)
    },
    get screenResolution() {
      return componentIn(body, SCREEN)
    },
    get languages() {
      return componentIn(body, LANGUAGES)
    },
    get userAgent() {
      return componentIn(body, USER_AGENT)
    },
  } as unknown as IdentifyBody['components'] & object
  const model = header(MODEL_HEADER)
  try {
    const hardware = hardwareKey(
      { components },
      model === '' ? {} : { [MODEL_HEADER]: model },
      header('user-agent'),
      parsers,
    )
    return hardwarePartition(workspace.id, env, hardware, partitions)
  } catch {
    return null
  }
}
