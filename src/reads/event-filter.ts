// What events can be searched by: each filter as SQL over the table of events, and as a test of one event that is not in it yet.
// What rules have a field for is asked as rules ask it; the rest stands here in both forms, side by side.

import type { IdentityMethod, SignalName, StoredEvent, Verdict } from '../domain/event.ts'
import { inCidrs, parseCidr } from '../domain/ip.ts'
import type { Leaf, Literal } from '../domain/rule.ts'
import { must } from '../lib/must.ts'
import { compileGroup } from '../rules/compile.ts'
import { createLayout, type FieldVector } from '../rules/predicate.ts'
import { conditionSql } from '../rules/to-sql.ts'
import { openSqlParams, type SqlParams } from '../rules/to-sql-params.ts'

export interface EventFilter {
  /** Any of them: a visitor and those that were merged into it. */
  readonly visitorIds?: readonly string[]
  /** The same of whom a new visitor may be. */
  readonly possibleIds?: readonly string[]
  /** Milliseconds; `after` is inclusive, `before` exclusive. */
  readonly before?: number
  readonly after?: number
  readonly verdict?: Verdict
  readonly bot?: boolean
  readonly linkedId?: string
  readonly country?: string
  readonly platform?: string
  readonly ruleId?: string
  readonly keyKind?: 'public' | 'secret'
  readonly signal?: SignalName
  /** An address or a range in its canonical spelling. */
  readonly ip?: string
  readonly asn?: number
  /** As it is stored: trimmed, in lower case. */
  readonly email?: string
  /** In lower case. */
  readonly urlHost?: string
  /** `none`: nobody labelled it. */
  readonly label?: 'fraud' | 'legitimate' | 'none'
  readonly deviceType?: string
  /** A family, or a family and its major version. */
  readonly browser?: string
  readonly method?: IdentityMethod
  /** Texts of values by their paths, `tag.action`: that of a number or a flag is as JSON has it, objects and lists have none. */
  readonly tags?: Readonly<Record<string, string>>
  /** Inclusive. */
  readonly suspectMin?: number
  readonly suspectMax?: number
  readonly confidenceMin?: number
  readonly confidenceMax?: number
}

/** Names that rules have for what is asked to be equal. */
const EQUAL = {
  country: 'ip.country',
  platform: 'device.platform',
  keyKind: 'request.keyKind',
  bot: 'signals.bot',
  linkedId: 'linkedId',
  email: 'email',
  asn: 'ip.asn',
  urlHost: 'url.host',
  deviceType: 'device.type',
  method: 'identity.method',
} as const satisfies Partial<Record<keyof EventFilter, string>>
const AT_LEAST = { suspectMin: 'scores.suspect', confidenceMin: 'confidence' } as const
const AT_MOST = { suspectMax: 'scores.suspect', confidenceMax: 'confidence' } as const

function conditionsOf(filter: EventFilter): Leaf[] {
  const found: Leaf[] = []
  const add = (names: Readonly<Record<string, string>>, operator: Leaf['operator']) => {
    for (const [name, field] of Object.entries(names)) {
      const value = filter[name as keyof EventFilter] as Literal | undefined
      if (value !== undefined) found.push({ field, operator, value })
    }
  }
  add(EQUAL, 'equals')
  add(AT_LEAST, 'gte')
  add(AT_MOST, 'lte')
  if (filter.signal !== undefined) found.push({ field: `signals.${filter.signal}`, operator: 'equals', value: true })
  for (const [field, text] of Object.entries(filter.tags ?? {})) {
    found.push({ field, operator: 'in', value: valuesWritten(text) })
  }
  return found
}

/** Every value that is written so. */
function valuesWritten(text: string): Literal[] {
  const number = Number(text)
  const isNumber = Number.isFinite(number) && String(number) === text
  const isFlag = text === 'true' || text === 'false'
  return [text, ...(isNumber ? [number] : []), ...(isFlag ? [text === 'true'] : [])]
}

const VERSION = / [0-9]+$/

/** Whether an event of the environment meets the filter: the same events of which SQL says so. */
export function openEventTest(filter: EventFilter): (event: StoredEvent) => boolean {
  const { visitorIds, possibleIds, before, after, verdict, ruleId, ip, label, browser } = filter
  const layout = createLayout({ scores: true })
  const holds = compileGroup({ operator: 'AND', rules: conditionsOf(filter) }, { layout })
  const values: FieldVector = []
  const range = ip === undefined ? null : must(parseCidr(ip), 'a range')
  return (event) => {
    if (visitorIds !== undefined && !visitorIds.includes(event.visitorId)) return false
    if (possibleIds !== undefined && !possibleIds.includes(event.possible?.visitorId ?? '')) return false
    if (before !== undefined && event.timestamp >= before) return false
    if (after !== undefined && event.timestamp < after) return false
    if (verdict !== undefined && event.verdict !== verdict) return false
    if (ruleId !== undefined && !event.matchedRules.some(({ id }) => id === ruleId)) return false
    if (range !== null && !inCidrs(event.ip.address, [range])) return false
    if (label !== undefined && (event.label ?? 'none') !== label) return false
    const shown = event.device.browser
    if (browser !== undefined && shown !== browser && shown.replace(VERSION, '') !== browser) return false
    layout.fill(event, values)
    return holds(values)
  }
}

export interface FilterSql {
  /** What an index is asked first; '' where there is none. */
  readonly first: string
  /** Each term behind an AND. */
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
}

/** Fixed text and typed parameters: no byte of a value ever becomes SQL. `params`: of whoever has more to ask. */
export function filterSql(filter: EventFilter, params: SqlParams = openSqlParams()): FilterSql {
  const text = (value: string) => params.add('String', value)
  const { visitorIds, possibleIds, before, after, verdict, linkedId, ruleId, ip, email, label, browser } = filter
  const first: string[] = []
  const terms: string[] = []
  const named: Record<string, string> = {}
  const anyOf = (ids: readonly string[], name: string, column: string, hash: string) => {
    const names = ids.map((id, i) => {
      named[`${name}${i}`] = id
      return `{${name}${i}:String}`
    })
    // Comparisons one by one, because that is what the index on the hash understands.
    first.push(names.length === 0 ? '0' : `(${names.map((one) => `${hash} = cityHash64(${one})`).join(' OR ')})`)
    if (names.length > 0) terms.push(`${column} IN (${names.join(', ')})`)
  }
  if (visitorIds !== undefined) anyOf(visitorIds, 'visitor', 'visitor_id', 'visitor_hash')
  if (possibleIds !== undefined) anyOf(possibleIds, 'possible', 'possible_visitor_id', 'possible_hash')
  if (linkedId !== undefined) first.push(`linked_hash = cityHash64(${text(linkedId)})`)
  if (email !== undefined) first.push(`email_hash = cityHash64(${text(email)})`)
  if (before !== undefined) terms.push(`ts < fromUnixTimestamp64Milli(${params.add('Int64', before)})`)
  if (after !== undefined) terms.push(`ts >= fromUnixTimestamp64Milli(${params.add('Int64', after)})`)
  if (verdict !== undefined) terms.push(`verdict = ${text(verdict)}`)
  if (ruleId !== undefined) terms.push(`has(matched_rules, ${text(ruleId)})`)
  if (label !== undefined) terms.push(`label = ${text(label)}`)
  if (browser !== undefined) {
    const name = text(browser)
    terms.push(`(browser = ${name} OR replaceRegexpOne(browser, ' [0-9]+\\\\z', '') = ${name})`)
  }
  if (ip !== undefined) addRange(ip, first, terms, params)
  for (const path of Object.keys(filter.tags ?? {})) {
    // A search for the name costs a tenth of reading the text as JSON, and most tags do not have it.
    const [, key = ''] = path.split('.')
    terms.push(`position(tag, ${text(JSON.stringify(key))}) > 0`)
  }
  const conditions = conditionsOf(filter)
  if (conditions.length > 0) {
    terms.push(conditionSql({ operator: 'AND', rules: conditions }, { params, scores: true, lists: () => null }))
  }
  return {
    // Left to itself the engine reads the ids of whole granules to compare them; few hashes are equal.
    first: first.length === 0 ? '' : ` PREWHERE ${first.join(' AND ')}`,
    sql: terms.map((term) => ` AND ${term}`).join(''),
    params: { ...params.values, ...named },
  }
}

const MAPPED_BITS = 96
/** IPv4 lies inside of IPv6 there. */
const IS_V4 = "ip BETWEEN toIPv6('::ffff:0.0.0.0') AND toIPv6('::ffff:255.255.255.255')"

function addRange(ip: string, first: string[], terms: string[], params: SqlParams): void {
  const { v6, bits } = must(parseCidr(ip), 'a range')
  const [address = ''] = ip.split('/')
  const given = params.add('IPv6', v6 ? address : `::ffff:${address}`)
  if (bits === (v6 ? 128 : 32)) {
    first.push(`ip_hash = cityHash64(IPv6NumToString(${given}))`)
    terms.push(`ip = ${given}`)
    return
  }
  const range = `IPv6CIDRToRange(${given}, ${params.add('UInt8', v6 ? bits : bits + MAPPED_BITS)})`
  terms.push(`ip BETWEEN tupleElement(${range}, 1) AND tupleElement(${range}, 2)`)
  if (v6) terms.push(`NOT (${IS_V4})`)
}
