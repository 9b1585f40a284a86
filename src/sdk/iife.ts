// The classic script build: `<script src="/sdk.js">` makes a global `Fingerpost`. The same file is its own worker script.

import { makeLoad, version } from './load.ts'
import { isOwnWorker, readInWorker } from './worker.ts'

const script = typeof document === 'object' ? document.currentScript : null

if (isOwnWorker()) self.postMessage(readInWorker())

export { FingerpostError } from './errors.ts'
export const load = makeLoad(script && 'src' in script ? String(script.src) : null)
export { version }
