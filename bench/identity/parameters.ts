// Every rate the simulated population is made by, in one table with where it comes from. A perturbed table multiplies each
// by its own factor, so that nothing can be fitted to this one point.

import { rng } from '../../test/helpers/rng.ts'

/** A chance lies in 0 to 1, a weight counts against its neighbours, an amount is any positive number. */
type Kind = 'chance' | 'weight' | 'amount'
type Row = readonly [value: number, kind: Kind, source: string]

// FS = Vastel et al., FP-Stalker (2018), Table II; HC = Gómez-Boix et al., Hiding in the Crowd (2018); GW = Andriamilanto
// et al., Guess Who (2020); E = Eckersley (2010); browsers = measured on Chromium 156 and Firefox 153; rest: assumptions.
const TABLE = {
  'platform.windows': [0.38, 'weight', 'assumed: 56 % desktops, of which two thirds'],
  'platform.mac': [0.13, 'weight', 'assumed'],
  'platform.linux': [0.03, 'weight', 'assumed'],
  'platform.chromeos': [0.02, 'weight', 'assumed'],
  'platform.android': [0.21, 'weight', 'assumed'],
  'platform.ios': [0.23, 'weight', 'assumed'],

  'windows.chrome': [0.72, 'weight', 'assumed, near public browser statistics'],
  'windows.edge': [0.2, 'weight', 'assumed'],
  'windows.firefox': [0.08, 'weight', 'assumed'],
  'mac.chrome': [0.53, 'weight', 'assumed'],
  'mac.safari': [0.41, 'weight', 'assumed'],
  'mac.firefox': [0.06, 'weight', 'assumed'],
  'linux.chrome': [0.65, 'weight', 'assumed'],
  'linux.firefox': [0.35, 'weight', 'assumed'],
  'android.chrome': [0.87, 'weight', 'assumed'],
  'android.samsung': [0.1, 'weight', 'assumed'],
  'android.firefox': [0.03, 'weight', 'assumed'],
  'ios.safari': [0.87, 'weight', 'assumed'],
  'ios.chrome': [0.13, 'weight', 'assumed'],
  'chrome.brave': [0.04, 'chance', 'assumed share of what calls itself Chrome'],
  'firefox.resist': [0.05, 'chance', 'assumed share with resistFingerprinting'],
  'ios.pad': [0.12, 'chance', 'assumed share of tablets'],

  'models.windows': [2_500, 'amount', 'assumed; makes first visits as unique as HC and GW found'],
  'models.mac': [250, 'amount', 'assumed'],
  'models.linux': [400, 'amount', 'assumed'],
  'models.chromeos': [40, 'amount', 'assumed'],
  'models.android': [700, 'amount', 'assumed'],
  'models.ios': [40, 'amount', 'assumed'],
  'models.zipf': [1, 'amount', 'assumed exponent of their popularity'],
  'drivers.perGpu': [5, 'amount', 'assumed builds that draw differently; HC: 8.0 bits of canvas'],

  'fleet.share': [0.05, 'chance', 'assumed share of devices'],
  'fleet.sizeMin': [20, 'amount', 'assumed'],
  'fleet.sizeMax': [300, 'amount', 'assumed'],
  'fleet.updateLagDays': [21, 'amount', 'assumed: updates are rolled out together'],
  'fleet.office': [0.92, 'chance', 'assumed visits from the office'],
  'household.sizeMax': [6, 'amount', 'assumed, even between 1 and this'],
  'household.twin': [0.05, 'chance', 'assumed: the same model as another one at home'],

  'network.leaseDays': [60, 'amount', 'assumed days a home keeps its address'],
  'network.static': [0.35, 'chance', 'assumed homes whose address never changes'],
  'network.sameSubnet': [0.6, 'chance', 'assumed: the next address lies in the same /24'],
  'network.ipv6': [0.3, 'chance', 'assumed homes and carriers with IPv6'],
  'network.desktopHome': [0.85, 'chance', 'assumed visits of desktops from home'],
  'network.mobileHome': [0.6, 'chance', 'assumed visits of phones over the home network'],
  'network.sticky': [0.8, 'chance', 'assumed: within four hours the device is still where it was'],
  'network.mobileCarrier': [0.85, 'chance', 'assumed rest of them over the carrier'],
  'carriers.perCountry': [3, 'amount', 'assumed'],
  'carriers.addresses': [800, 'amount', 'assumed addresses that share all phones of a carrier'],
  'carriers.regions': [8, 'amount', 'assumed parts of a pool a phone stays in'],
  'vpn.share': [0.05, 'chance', 'assumed users'],
  'vpn.use': [0.6, 'chance', 'assumed visits of those'],
  'vpn.exits': [300, 'amount', 'assumed addresses that all of them share'],
  'travel.perYear': [2.5, 'amount', 'FS: half of the instances change time zone within 206 days, by travel or DST'],
  'travel.days': [5, 'amount', 'assumed mean length'],

  'visits.gapDays': [12, 'amount', 'assumed median; log-normal'],
  'visits.gapSigma': [1.1, 'amount', 'assumed'],
  'visits.burst': [0.4, 'chance', 'assumed: the next visit follows within hours'],
  'visits.burstHours': [3, 'amount', 'assumed mean'],
  'devices.present': [0.6, 'chance', 'assumed share that is there from the start'],
  'devices.retire': [0.1, 'chance', 'assumed share that disappears along the way'],

  'storage.clearOnExit': [0.08, 'chance', 'assumed users'],
  'storage.cleared': [0.025, 'chance', 'assumed per visit; E: users who delete cookies are many more than once a year'],
  'storage.safariCapped': [
    0.5,
    'chance',
    'assumed Safari users whose token lives in script-written storage: seven days',
  ],
  'private.usual': [0.03, 'chance', 'assumed per visit'],
  'private.heavyUsers': [0.1, 'chance', 'assumed'],
  'private.heavy': [0.35, 'chance', 'assumed per visit of heavy users'],

  'release.lagDays': [
    6,
    'amount',
    'assumed mean of those who update; FS: UA constant 39.7 days (median), 8.4 (5th centile)',
  ],
  'release.laggards': [0.1, 'chance', 'assumed'],
  'release.laggardDays': [90, 'amount', 'assumed mean'],
  // Together with driver updates 0.87 a year, whose median distance are the 290 days of FS.
  'release.redraw': [0.05, 'chance', 'per version and GPU; FS: canvas constant 290 days (median)'],
  'release.redrawAll': [0.01, 'chance', 'assumed per version: every GPU at once'],
  'release.resound': [0.01, 'chance', 'assumed per version; audio is more stable than canvas'],
  'os.updatesPerYear.windows': [0.7, 'amount', 'assumed visible in client hints'],
  'os.updatesPerYear.mac': [5, 'amount', 'assumed'],
  'os.updatesPerYear.android': [0.8, 'amount', 'assumed'],
  'os.updatesPerYear.linux': [4, 'amount', 'assumed'],
  'drivers.updatesPerYear': [0.2, 'amount', 'assumed; see release.redraw'],
  'fonts.changesPerYear': [0.25, 'amount', 'FS: never for half, 11.8 days for a tenth of the instances'],
  'languages.changesPerYear': [0.05, 'amount', 'FS: never for half, 215 days for a tenth'],

  'dock.share': [0.18, 'chance', 'assumed desktops that are laptops with a second screen'],
  'dock.use': [0.4, 'chance', 'assumed visits of those at the second screen'],
  'zoom.use': [0.03, 'chance', 'assumed visits with another page zoom'],
  'traits.textScaledPhone': [0.25, 'chance', 'assumed people whose phone shows larger or smaller text'],
  'traits.textScaledDesktop': [0.06, 'chance', 'assumed'],
  'traits.reducedMotion': [0.06, 'chance', 'assumed'],
  'traits.contrast': [0.03, 'chance', 'assumed, of contrast and of transparency'],
  'traits.forcedColors': [0.01, 'chance', 'assumed on Windows'],
  'traits.voicesAdded': [0.1, 'chance', 'assumed devices with voices of their own'],
  'traits.barMoved': [0.25, 'chance', 'assumed desktops whose bar is not as it came'],
  'traits.replugged': [0.15, 'chance', 'assumed visits with another headset or camera'],
  'traits.changesPerYear': [0.25, 'amount', 'assumed: what people ask of their system'],
  'spoof.share': [0.005, 'chance', 'assumed devices that claim another profile on every visit'],
} as const satisfies Readonly<Record<string, Row>>

export type ParameterName = keyof typeof TABLE
export type Rates = Readonly<Record<ParameterName, number>>

export const PARAMETERS: Readonly<Record<ParameterName, Row>> = TABLE

const CHANCE_MAX = 0.95

/** The rates; with a seed each multiplied by its own factor from U[0.5, 2], chances kept below 0.95. */
export function ratesOf(perturbSeed: number | null): Rates {
  const r = rng(perturbSeed ?? 0)
  const rates: Partial<Record<ParameterName, number>> = {}
  for (const name of Object.keys(TABLE) as ParameterName[]) {
    const [value, kind] = PARAMETERS[name]
    const factor = perturbSeed === null ? 1 : 0.5 + 1.5 * r.float()
    rates[name] = kind === 'chance' ? Math.min(CHANCE_MAX, value * factor) : value * factor
  }
  return rates as Rates
}
