// The module build: `import { load } from 'https://…/sdk.mjs'`.

import { makeLoad, version } from './load.ts'

export { FingerpostError } from './errors.ts'
export type { Client, GetOptions, IdentifyResult, LoadOptions, PendingResult } from './types.ts'
export const load = makeLoad(import.meta.url)
export { version }
