// In which coding an answer leaves: what its client takes, of what there is.

import type { HttpHeader } from '../http/message.ts'

export type Coding = 'br' | 'gzip'

/** What a route whose answers have codings has to capture. */
export const ACCEPT_ENCODING = 'accept-encoding'
/** On each of its answers, in whichever coding. */
export const VARIES: HttpHeader = ['Vary', 'Accept-Encoding']

/** null: as it is (RFC 9110, 12.5.3). */
export function codingFor(accepted: string, isThere: (coding: Coding) => boolean): Coding | null {
  const takes = (coding: Coding) =>
    accepted.split(',').some((one) => {
      const [name = '', weight = ''] = one.split(';')
      return name.trim().toLowerCase() === coding && !/^\s*q\s*=\s*0(\.0*)?\s*$/.test(weight)
    })
  for (const coding of ['br', 'gzip'] as const) if (isThere(coding) && takes(coding)) return coding
  return null
}
