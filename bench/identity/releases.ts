// Browser releases: which version is out when, which one a device has, and which releases draw or sound differently on
// which graphics cards. What a release changes it changes for every device with that card.

import { hash32 } from '../../src/domain/ids.ts'
import type { Rates } from './parameters.ts'

export type Train = 'chromium' | 'firefox' | 'safari' | 'samsung'

interface Calendar {
  readonly major: number
  readonly atMs: number
  readonly everyDays: number
}

const DAY_MS = 86_400_000
// A known release and the usual distance of the vendor's calendar. Safari counts its small releases.
const CALENDARS: Readonly<Record<Train, Calendar>> = {
  chromium: { major: 147, atMs: Date.UTC(2026, 3, 7), everyDays: 28 },
  firefox: { major: 150, atMs: Date.UTC(2026, 3, 21), everyDays: 28 },
  safari: { major: 0, atMs: Date.UTC(2025, 8, 15), everyDays: 45 },
  samsung: { major: 29, atMs: Date.UTC(2026, 2, 10), everyDays: 84 },
}
const SAFARI_PER_MAJOR = 8

/** The newest version at a time. */
export function newestAt(train: Train, atMs: number): number {
  const { major, atMs: known, everyDays } = CALENDARS[train]
  return Math.max(train === 'safari' ? 0 : 1, major + Math.floor((atMs - known) / (everyDays * DAY_MS)))
}

/** When a version came out, in milliseconds. */
export function releasedAt(train: Train, version: number): number {
  const { major, atMs, everyDays } = CALENDARS[train]
  return atMs + (version - major) * everyDays * DAY_MS
}

/** `26.3` from the count of releases since 26.0. */
export const safariVersion = (release: number): string =>
  `${26 + Math.floor(release / SAFARI_PER_MAJOR)}.${release % SAFARI_PER_MAJOR}`

/** The Chromium inside a Samsung Internet. */
export const chromiumOfSamsung = (major: number): number => 142 + (major - 29) * 3

export interface Rendering {
  /** Changes whenever text is drawn differently on this card. */
  canvas(train: Train, card: string, version: number): number
  /** Changes whenever sound is rendered differently. */
  audio(train: Train, version: number): number
}

export function openRendering(rates: Rates, seed: number): Rendering {
  const known = new Map<string, number>()
  const happens = (what: string, chance: number) => hash32(`${seed}/${what}`) / 2 ** 32 < chance

  /** The last version, at most `version`, that changed something; 0 when none ever did. */
  function lastChange(key: string, version: number, changes: (version: number) => boolean): number {
    const found = known.get(key)
    if (found !== undefined) return found
    let at = version
    while (at > 0 && !changes(at)) at--
    known.set(key, at)
    return at
  }

  return {
    canvas: (train, card, version) =>
      lastChange(
        `${train}/${card}/${version}`,
        version,
        (v) =>
          happens(`${train}/${v}/redraw`, rates['release.redrawAll']) ||
          happens(`${train}/${v}/redraw/${card}`, rates['release.redraw']),
      ),
    audio: (train, version) =>
      lastChange(`${train}/${version}`, version, (v) => happens(`${train}/${v}/sound`, rates['release.resound'])),
  }
}
