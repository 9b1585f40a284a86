// Lists of addresses as they are published: one CIDR range, address, range of two ends or AS number per line, with comments,
// or the first column of a CSV.

import { cleanText, readSourceLines } from './lines.ts'
import type { RangesBuilder } from './ranges.ts'
import { addSpan, cidrSpan, endsSpan } from './spans.ts'

export interface ListOptions {
  /** What its entries say: the provider of a VPN, the name of a list. */
  readonly name: string | null
  /** Whether a comment behind an entry names it where `name` does not. */
  readonly commentsAreNames: boolean
}

/** A list that names more than this of all addresses is a mistake: one bad line would flag everybody. */
const BITS_MIN = { v4: 8, v6: 12 }
const ASN_MAX = 4_294_967_294
const COMMENT = /^(?:#|;|\/\/)/
const ENTRY = /^"?([^\s,;#"]+)"?(.*)$/

/** `M247, GB (NordVPN)` names NordVPN, `NordVPN (TEFINCOM S.A.)` too. */
function nameInComment(rest: string): string | null {
  const comment = /[#;]\s*(.+)$/.exec(rest)?.[1]
  if (comment === undefined) return null
  const [main = '', inside = ''] = comment.split(/[()]/, 2)
  const named = /vpn/i.test(inside) && !/vpn|:\/\//i.test(main) ? inside : main
  const name = named.split(/,|https?:/, 1)[0] ?? ''
  return cleanText(name)
}

/** Adds what the lines name. Throws BadSource when too few of them can be read. */
export function addList(ranges: RangesBuilder, bytes: Buffer, options: ListOptions): void {
  let isFirst = true

  function read(line: string): boolean {
    const isHeader = isFirst
    isFirst = false
    if (COMMENT.test(line)) return true
    const [, entry = '', rest = ''] = ENTRY.exec(line) ?? []
    const text = options.name ?? (options.commentsAreNames ? nameInComment(rest) : null) ?? ''
    const asn = /^(?:AS)?(\d{1,10})$/i.exec(entry)?.[1]
    if (asn !== undefined) {
      const number = Number(asn)
      if (number < 1 || number > ASN_MAX) return false
      ranges.addAsn(number, ranges.intern(text))
      return true
    }
    const dash = entry.indexOf('-')
    const span = dash < 0 ? cidrSpan(entry) : endsSpan(entry.slice(0, dash), entry.slice(dash + 1))
    if (span === null) return isHeader && /[a-z]/i.test(entry)
    if ('bits' in span && (span.bits as number) < (span.first.length === 1 ? BITS_MIN.v4 : BITS_MIN.v6)) return false
    if (!('bits' in span) && isTooWide(span.first, span.last)) return false
    addSpan(ranges, span, ranges.intern(text))
    return true
  }

  readSourceLines(bytes, read)
}

function isTooWide(first: readonly number[], last: readonly number[]): boolean {
  const bits = first.length === 1 ? BITS_MIN.v4 : BITS_MIN.v6
  return (last[0] as number) - (first[0] as number) >= 2 ** (32 - bits)
}
