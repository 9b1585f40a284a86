// `fingerpost keygen`: a well-formed set of the four keys, for pre-seeding a deployment.

import { makeKey } from '../domain/keys.ts'
import { openRandom } from '../lib/random.ts'

/** Environment lines, or with `json` one object. */
export function keygen(json: boolean): string {
  const random = openRandom()
  const keys = {
    FINGERPOST_PUBLIC_KEY: makeKey('public', 'live', random),
    FINGERPOST_SECRET_KEY: makeKey('secret', 'live', random),
    FINGERPOST_TEST_PUBLIC_KEY: makeKey('public', 'test', random),
    FINGERPOST_TEST_SECRET_KEY: makeKey('secret', 'test', random),
  }
  if (json) return JSON.stringify(keys, null, 2)
  return Object.entries(keys)
    .map(([name, key]) => `${name}=${key}`)
    .join('\n')
}
