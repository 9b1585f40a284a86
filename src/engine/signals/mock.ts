// Outcomes that a test key forces. A forced signal is marked as such; scores are computed from it as from a real one.

import { quantise4, quantiseSuspect, type Scores, SIGNAL_NAMES, type Signal, type Signals } from '../../domain/event.ts'
import type { Mock } from '../../domain/identify.ts'
import { clear, detected } from './evidence.ts'

const forced = (on: boolean): Signal => (on ? detected(1, ['mock'], 'mock') : clear(1, [], 'mock'))

/** Signals with the mock's in place of those computed. Call before scoring, so that scores follow. */
export function mockSignals(signals: Signals, mock: Mock | undefined): Signals {
  const wanted = mock?.signals
  if (wanted === undefined) return signals
  const result = { ...signals }
  for (const name of SIGNAL_NAMES) {
    const value = wanted[name]
    if (value === undefined) continue
    const on = typeof value === 'boolean' ? value : value.detected
    const details = typeof value === 'boolean' ? null : value
    result[name] = forced(on)
    if (name === 'vpn') result.vpnProvider = on ? (details?.provider ?? null) : null
    if (name === 'bot') result.botType = on ? (details?.type ?? 'mock') : null
  }
  return result
}

/** Signals and scores as a test key wants them. Doing it twice changes nothing. */
export function applyMock(
  signals: Signals,
  scores: Scores,
  mock: Mock | undefined,
): { signals: Signals; scores: Scores } {
  const wanted = mock?.scores
  return {
    signals: mockSignals(signals, mock),
    scores:
      wanted === undefined
        ? scores
        : {
            abuse: quantise4(wanted.abuse ?? scores.abuse),
            ato: quantise4(wanted.ato ?? scores.ato),
            bot: quantise4(wanted.bot ?? scores.bot),
            suspect: quantiseSuspect(wanted.suspect ?? scores.suspect),
          },
  }
}
