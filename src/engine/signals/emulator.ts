// emulator: a phone that is a program. Apps tell it themselves; a browser gives it away by what draws its pages.

import type { Signal } from '../../domain/event.ts'
import { DETECTED_MIN, EMULATOR } from '../weights.ts'
import { clear, newTally, raise, type SignalInput, undetermined, verdictOf } from './evidence.ts'
import { detectNativeEmulator } from './native-flags.ts'

const CLEAR_MAX = 0.9

/** Undetermined when neither an app nor a GPU speaks; clear for desktop systems, which are no phones at all. */
export function detectEmulator({ attributes }: SignalInput): Signal {
  const { native, os, gpu, claims } = attributes
  const told = native === null ? null : detectNativeEmulator(native)
  if (told !== null) return told
  if (claims.components === 0 || os === 'other') return undetermined()
  if (os !== 'Android' && os !== 'iOS') return clear(CLEAR_MAX, [], 'client')
  if (gpu === null || gpu.class === 'masked') return undetermined()
  const tally = newTally()
  if (gpu.class === 'software') raise(tally, 'software_gpu', EMULATOR.software_gpu)
  if (gpu.class === 'virtual') raise(tally, 'virtual_gpu', EMULATOR.virtual_gpu)
  if (os === 'Android' && attributes.architecture === 'x86') raise(tally, 'x86_phone', EMULATOR.x86_phone)
  return verdictOf(tally, DETECTED_MIN.emulator, CLEAR_MAX, 'client')
}
