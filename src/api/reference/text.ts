// A text that is served under a path of the reference.

import type { HttpHeader } from '../../http/message.ts'

export interface Text {
  readonly make: () => string
  /** Default JSON. */
  readonly contentType?: string
  /** Default: asked for again each time. */
  readonly cacheControl?: string
  readonly headers?: readonly HttpHeader[]
}
