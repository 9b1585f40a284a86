// Recognition measured on pairs that people labelled (`fingerpost corrections export`): would the later side be taken for the
// earlier one by its looks?

import { readFileSync } from 'node:fs'
import { hash53 } from '../../src/domain/ids.ts'
import { lineOf, subnetOf } from '../../src/domain/ip.ts'
import { type Attributes, readAttributes } from '../../src/identity/attributes.ts'
import { recognise } from '../../src/identity/matcher.ts'
import type { VisitorState } from '../../src/identity/visitor.ts'
import { must } from '../../src/lib/must.ts'
import type { CorrectionSide, ExportedCorrection } from '../../src/ops/corrections.ts'
import { type Precision, wilson } from './tally.ts'

export interface CorrectionsResult {
  readonly pairs: number
  /** Pairs of which a side is gone, or has nothing to be compared by. */
  readonly unknown: number
  readonly same: { readonly n: number; readonly linked: number }
  readonly different: { readonly n: number; readonly linked: number }
  /** Of the pairs that would be linked, those that are one device. */
  readonly precision: Precision
  /** Of the pairs that are one device, those that would be linked. */
  readonly recall: Precision
}

/** The later side visits from here. */
const IP = '198.51.100.7'
const NOBODY = readAttributes({}, {}, '')

type Known = NonNullable<CorrectionSide>

function attributesOf({ profile: known, devices }: Known): Attributes {
  const profile = must(known, 'a profile')
  const { os, family, major, gpuClass } = profile
  const engine = family === 'Firefox' ? 'Gecko' : os === 'iOS' || family === 'Safari' ? 'WebKit' : 'Blink'
  const gpu =
    gpuClass === null ? null : { name: devices[0]?.gpu ?? '', class: gpuClass, api: null, hash: profile.values[0] ?? 0 }
  const deviceType = os === 'iOS' || os === 'Android' ? 'mobile' : 'desktop'
  const ua = { ...NOBODY.ua, os, family, major, engine, type: deviceType }
  return { ...NOBODY, ua, os, browserFamily: family, browserMajor: major, gpu, deviceType, profile } as Attributes
}

/** Full addresses are not kept, so the network of the visit gets one of ours wherever it occurs. */
function relocated(candidate: Known, visit: Known): VisitorState {
  const from = visit.networks[0]
  const networks = candidate.networks.map((network) => ({
    ...network,
    ip: network.ip === from?.ip ? hash53(lineOf(IP)) : network.ip,
    subnet: network.subnet === from?.subnet ? hash53(subnetOf(IP)) : network.subnet,
  }))
  return { ...candidate, networks, ips: [], accounts: { hashes: [], full: false } }
}

/** null: it cannot be told. */
function isLinked({ sides }: ExportedCorrection): boolean | null {
  const [one, other] = sides
  if (!one?.profile || !other?.profile) return null
  const [earlier, later] = one.lastSeenAt <= other.lastSeenAt ? [one, other] : [other, one]
  const { visitor } = recognise({
    attributes: attributesOf(later),
    ip: IP,
    atMs: later.lastSeenAt,
    token: null,
    tokenVisitor: null,
    incognito: false,
    exact: [],
    linked: [relocated(earlier, later)],
  })
  return visitor !== null
}

export function measureCorrections(pairs: readonly ExportedCorrection[]): CorrectionsResult {
  const same = { n: 0, linked: 0 }
  const different = { n: 0, linked: 0 }
  let unknown = 0
  for (const pair of pairs) {
    const linked = isLinked(pair)
    if (linked === null) {
      unknown++
      continue
    }
    const counts = pair.same ? same : different
    counts.n++
    if (linked) counts.linked++
  }
  return {
    pairs: pairs.length,
    unknown,
    same,
    different,
    precision: wilson(same.linked, same.linked + different.linked),
    recall: wilson(same.linked, same.n),
  }
}

export const readCorrectionsFile = (path: string): ExportedCorrection[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ExportedCorrection)

const percent = ({ n, share, lower }: Precision): string =>
  n === 0 ? 'nothing to tell by' : `${(100 * share).toFixed(1)} % of ${n} (at least ${(100 * lower).toFixed(1)} %)`

export const correctionsText = ({ pairs, unknown, same, different, precision, recall }: CorrectionsResult): string =>
  [
    `${pairs} pairs, ${unknown} of them without anything to compare`,
    `one device:  ${same.linked} of ${same.n} would be linked by their looks`,
    `two devices: ${different.linked} of ${different.n} would be linked`,
    `precision ${percent(precision)}, recall ${percent(recall)}`,
  ].join('\n')
