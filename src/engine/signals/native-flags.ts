// What an app on the phone says of it, checked against what else is known: rootedDevice and clonedApp. Desktop browsers are
// neither; for a browser on a phone nothing is known.

import type { Signal } from '../../domain/event.ts'
import type { Native } from '../../domain/native.ts'
import { ATTESTED, DETECTED_MIN, NATIVE } from '../weights.ts'
import { clear, type EvidenceTally, newTally, raise, type SignalInput, undetermined, verdictOf } from './evidence.ts'

const DESKTOP_CONFIDENCE = 0.9
const CLEAR_MAX = 0.95

type Flag = 'rooted' | 'emulator' | 'cloned' | 'hooked'

/** Raises what the flag says, with its evidence by name. */
function raiseFlag(tally: EvidenceTally, native: Native, flag: Flag): void {
  if (native[flag] !== true) return
  raise(tally, 'native', NATIVE.flag)
  for (const code of native.evidence?.[flag] ?? []) raise(tally, `native:${code}`, 0)
}

/** The verdicts of Play Integrity, null from anybody else: their services say nothing about the device. */
const integrityOf = ({ attestation }: Native): readonly string[] | null =>
  attestation?.provider === 'play_integrity' ? attestation.verdicts : null

function forDevice(input: SignalInput): Signal {
  const { claims, deviceType } = input.attributes
  return claims.components > 0 && deviceType === 'desktop' ? clear(DESKTOP_CONFIDENCE, [], 'client') : undetermined()
}

export function detectRootedDevice(input: SignalInput): Signal {
  const { native } = input.attributes
  if (native === null) return forDevice(input)
  const tally = newTally()
  raiseFlag(tally, native, 'rooted')
  const verdicts = integrityOf(native)
  const intact = verdicts?.some((one) => ATTESTED.device.includes(one)) === true
  if (verdicts !== null && !intact) raise(tally, 'attestation', NATIVE.attestation_below_device)
  if (native.rooted === undefined && !intact && tally.methods.length === 0) return undetermined()
  return verdictOf(tally, DETECTED_MIN.native, CLEAR_MAX, 'native')
}

export function detectClonedApp(input: SignalInput): Signal {
  const { native } = input.attributes
  if (native === null) return forDevice(input)
  const tally = newTally()
  raiseFlag(tally, native, 'cloned')
  if (input.nativeIdElsewhere === true) raise(tally, 'native_id_elsewhere', NATIVE.id_elsewhere)
  if (native.cloned === undefined && tally.methods.length === 0) return undetermined()
  return verdictOf(tally, DETECTED_MIN.native, CLEAR_MAX, 'native')
}

const APPLE_MODEL = /iphone|ipad|ipod|^(x86_64|i386|arm64)$/i

/** What an app says of its device that its device cannot be. */
export function nativeContradictions(tally: EvidenceTally, { native, ua }: SignalInput['attributes']): void {
  if (native === null) return
  raiseFlag(tally, native, 'hooked')
  const apple = native.platform === 'ios'
  if (native.model !== undefined && native.model !== '' && APPLE_MODEL.test(native.model) !== apple) {
    // An Android tablet may well be called arm64 by its maker; only a name of Apple's is none of its names.
    if (apple || /iphone|ipad|ipod/i.test(native.model)) raise(tally, 'native_model', NATIVE.model_of_other_system)
  }
  const claimed = apple ? 'iOS' : 'Android'
  if ((ua.os === 'iOS' || ua.os === 'Android') && ua.os !== claimed) {
    raise(tally, 'native_user_agent', NATIVE.user_agent_of_other_system)
  }
}

/** Models that only emulators and simulators have. */
const EMULATED_MODEL = /^(sdk_|android sdk built for|google_sdk|emulator)|genymotion|^(x86_64|i386|arm64)$/i

export function detectNativeEmulator(native: Native): Signal | null {
  const tally = newTally()
  raiseFlag(tally, native, 'emulator')
  if (native.model !== undefined && EMULATED_MODEL.test(native.model))
    raise(tally, 'native_model', NATIVE.emulated_model)
  if (integrityOf(native)?.includes(ATTESTED.virtual)) raise(tally, 'attestation', NATIVE.attested_virtual)
  if (tally.methods.length > 0) return verdictOf(tally, DETECTED_MIN.native, CLEAR_MAX, 'native')
  return native.emulator === undefined ? null : clear(CLEAR_MAX, [], 'native')
}
