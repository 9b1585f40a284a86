// incognito: a private window, as the page's own test says. Never concluded from a missing token.

import type { Signal } from '../../domain/event.ts'
import type { Attributes } from '../../identity/attributes.ts'
import type { Engine } from '../../identity/user-agent.ts'
import { clear, detected, undetermined } from './evidence.ts'

// Names the test gives, with the engine each must run on; any other answer is a guess of its.
const KNOWN: Readonly<Record<string, Engine>> = {
  Chrome: 'Blink',
  Chromium: 'Blink',
  Edge: 'Blink',
  Brave: 'Blink',
  Opera: 'Blink',
  Firefox: 'Gecko',
  Safari: 'WebKit',
}
const CONFIDENCE = 0.95

/** Clear or detected only for a browser the test knows and that is what it says it is. */
export function detectIncognito(attributes: Attributes): Signal {
  const said = attributes.claims.incognito
  if (said === null) return undetermined()
  const engine = Object.hasOwn(KNOWN, said.browserName) ? KNOWN[said.browserName] : undefined
  if (engine === undefined || engine !== attributes.ua.engine) return undetermined()
  return said.isPrivate ? detected(CONFIDENCE, ['storage_probe'], 'client') : clear(CONFIDENCE, [], 'client')
}
