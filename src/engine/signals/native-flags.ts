// rootedDevice and clonedApp: only an app on the phone can tell. Desktop browsers are neither; for a browser on a phone
// nothing is known.

import type { Signal } from '../../domain/event.ts'
import { clear, detected, type SignalInput, undetermined } from './evidence.ts'

const NATIVE_CONFIDENCE = 0.95
const DESKTOP_CONFIDENCE = 0.9

function flagged(input: SignalInput, flag: boolean | undefined): Signal {
  if (flag === true) return detected(NATIVE_CONFIDENCE, ['native'], 'native')
  if (flag === false) return clear(NATIVE_CONFIDENCE, [], 'native')
  const { claims, deviceType, native } = input.attributes
  const desktop = native === null && claims.components > 0 && deviceType === 'desktop'
  return desktop ? clear(DESKTOP_CONFIDENCE, [], 'client') : undetermined()
}

export const detectRootedDevice = (input: SignalInput): Signal => flagged(input, input.attributes.native?.rooted)
export const detectClonedApp = (input: SignalInput): Signal => flagged(input, input.attributes.native?.cloned)
