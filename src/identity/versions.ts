// What browser versions tell: which ones are in use lately, so that a rare one says much and the newest little, and how often one
// device is seen with the same, a newer or an older one after a time.

/** Versions counted; the rarest makes room for another. */
const VERSIONS_KEPT = 12
/** Visits after which counts halve: few, since versions in use are those of the last days or weeks. */
const VERSIONS_SUM_MAX = 200
/** [version, count] after another, 0 where there is none. */
export const newVersions = (): number[] => new Array<number>(VERSIONS_KEPT * 2).fill(0)

/** Releases come every four weeks; laggards skip some (FP-Stalker: a User-Agent keeps for 40 days, half of the time). */
const RELEASE_MS = 28 * 86_400_000
const SLACK_MAJORS = 2
/** What the priors weigh, in visits. */
const UPDATES_VISITS = 40
const USE_VISITS = 20
/** Two devices at any two times: same, newer, older (assumed; until traffic tells). */
const USE_ASSUMED = { same: 0.35, newer: 0.35, older: 0.3 } as const
/** Of devices that come back, those with an older version: restored, or another installation of the browser (assumed). */
const OLDER_ASSUMED = 0.002
/**
 * No device is sure to have had an update, or not to have had it: who comes back without a token was often restarted, which is when
 * browsers take theirs (assumed; from 0.005 to 0.25 nothing changes for simulated devices).
 */
const UPDATED_MIN = 0.25
const UPDATED_MAX = 0.98
/** Faster than releases come: not the same installation (log, assumed). */
const TOO_FAR = -3

/** CHANGES what is given. */
export function learnVersion(versions: number[], major: number): void {
  let place = 0
  let sum = 1
  for (let i = 0; i < versions.length; i += 2) {
    const count = versions[i + 1] as number
    sum += count
    if (versions[i] === major && count > 0) place = i
    else if (versions[place] !== major && count < (versions[place + 1] as number)) place = i
  }
  versions[place + 1] = versions[place] === major ? (versions[place + 1] as number) + 1 : 1
  versions[place] = major
  if (sum <= VERSIONS_SUM_MAX) return
  for (let i = 1; i < versions.length; i += 2) versions[i] = Math.floor((versions[i] as number) / 2)
}

interface Use {
  readonly same: number
  readonly newer: number
  readonly older: number
}

/** Shares of the devices seen now whose version is `known`, a newer one, an older one. */
function inUse(versions: readonly number[], known: number): Use {
  let same = USE_VISITS * USE_ASSUMED.same
  let newer = USE_VISITS * USE_ASSUMED.newer
  let older = USE_VISITS * USE_ASSUMED.older
  for (let i = 0; i < versions.length; i += 2) {
    const count = versions[i + 1] as number
    const version = versions[i] as number
    if (version === known) same += count
    else if (version > known) newer += count
    else older += count
  }
  const sum = same + newer + older
  return { same: same / sum, newer: newer / sum, older: older / sum }
}

/** Of a device that took what others use, the chance that it is not what it had. */
const couldMove = ({ same, newer }: Use): number => newer / (same + newer)

/** Hundredths of updates that could be seen and of those that were: what a pair of visits of one device adds to them. */
export function updateOf(
  versions: readonly number[],
  known: number,
  seen: number,
): readonly [could: number, moved: number] {
  if (seen < known) return [0, 0]
  return [Math.round(100 * couldMove(inUse(versions, known))), seen > known ? 100 : 0]
}

export interface VersionsLearned {
  readonly versions: readonly number[]
  /** As `updateOf` tells them, of that age of the earlier visit. */
  readonly could: number
  readonly moved: number
}

/**
 * Log of how much likelier a version is on the device last seen with `known` than on any other. A device either keeps its version
 * or takes one that others use.
 */
export function versionRatio(
  { versions, could, moved }: VersionsLearned,
  known: number | null,
  seen: number | null,
  elapsedMs: number,
): number {
  if (known === null || seen === null) return 0
  // A visit of the past: what is known came later.
  const [before, after] = elapsedMs >= 0 ? [known, seen] : [seen, known]
  const use = inUse(versions, before)
  if (after < before) return Math.log(OLDER_ASSUMED / use.older)
  const elapsed = Math.abs(elapsedMs)
  const assumed = 1 - Math.exp(-elapsed / RELEASE_MS)
  const learned = (moved / 100 + UPDATES_VISITS * assumed) / (could / 100 + UPDATES_VISITS)
  const updated = Math.min(UPDATED_MAX, Math.max(UPDATED_MIN, learned))
  const move = couldMove(use)
  if (after === before) return Math.log((1 - updated * move) / use.same)
  const log = Math.log((updated * move) / use.newer)
  return after - before > elapsed / RELEASE_MS + SLACK_MAJORS ? Math.min(log, TOO_FAR) : log
}
