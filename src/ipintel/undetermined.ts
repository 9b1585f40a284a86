// What cannot be told of anybody because there is no data for it.

import type { SourceName } from './sources.ts'

/** Each by the sources of which one is enough. */
const TOLD_BY = {
  vpn: ['vpn'],
  proxy: ['datacenter', 'badAsn'],
  tor: ['tor'],
  country: ['geo'],
} as const satisfies Readonly<Record<string, readonly SourceName[]>>

/** Names of the signals and facts that stay undetermined, in a fixed order; none when everything is there. */
export const undeterminedWithout = (has: (source: SourceName) => boolean): string[] =>
  Object.entries(TOLD_BY).flatMap(([name, sources]) => (sources.some(has) ? [] : [name]))

/** `vpn, proxy and tor` */
export const inWords = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

/** What an operator runs to change that. */
export const FETCH_FREE_DATA = 'fingerpost data update --recommended'
