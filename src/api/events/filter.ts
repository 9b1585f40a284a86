// The filters of /v1/events as parameters of a query, and what they mean.

import { ApiError, invalid } from '../../domain/errors.ts'
import { SIGNAL_NAMES, VERDICTS } from '../../domain/event.ts'
import { isVisitorId } from '../../domain/ids.ts'
import { normaliseEntry } from '../../domain/list.ts'
import { oneOf, type Static, strict, Type } from '../../domain/schema.ts'
import { scoresVisible } from '../../events/present.ts'
import type { EventFilter } from '../../reads/event-filter.ts'
import type { VisitorReads } from '../../reads/visitors.ts'
import type { Caller } from '../../records/auth.ts'
import type { Fragment } from '../describe.ts'
import { readMoment } from '../query.ts'
import { PAGE_LIMIT } from '../schemas.ts'

export const optionalText = (maxLength: number) => Type.Optional(Type.String({ minLength: 1, maxLength }))
export const EMAIL = Type.Optional(Type.String({ maxLength: 320, pattern: '^\\s*[^\\s@]+@[^\\s@]+\\s*$' }))
const within = (maximum: number) => Type.Optional(Type.Number({ minimum: 0, maximum }))
const TIMES = { before: optionalText(40), after: optionalText(40) }
export const PAGE = { ...TIMES, limit: PAGE_LIMIT, cursor: optionalText(200) }

const ASN_MAX = 4_294_967_295
const SUSPECT_MAX = 100
const TAGS_MAX = 8
const TAG_PREFIX = 'tag.'
const TAG_CHARS_MAX = 256

export const FILTER_QUERY = {
  visitorId: optionalText(64),
  possibleVisitorId: optionalText(64),
  verdict: Type.Optional(oneOf(VERDICTS)),
  bot: Type.Optional(Type.Boolean()),
  linkedId: optionalText(256),
  country: Type.Optional(Type.String({ pattern: '^[A-Z]{2}$', maxLength: 2 })),
  platform: optionalText(32),
  ruleId: optionalText(64),
  keyKind: Type.Optional(oneOf(['public', 'secret'])),
  signal: Type.Optional(oneOf(SIGNAL_NAMES)),
  ip: optionalText(64),
  asn: Type.Optional(Type.Integer({ minimum: 1, maximum: ASN_MAX })),
  email: EMAIL,
  urlHost: optionalText(256),
  label: Type.Optional(oneOf(['fraud', 'legitimate', 'none'])),
  deviceType: Type.Optional(oneOf(['desktop', 'mobile', 'tablet', 'other'])),
  browser: optionalText(64),
  method: Type.Optional(oneOf(['token', 'exact', 'linked', 'new'])),
  suspectMin: within(SUSPECT_MAX),
  suspectMax: within(SUSPECT_MAX),
  confidenceMin: within(1),
  confidenceMax: within(1),
}

/** Parameters whose names are open: `tag.<key>`, or `tag.<key>.<key>` for what is inside. */
export const TAG_QUERY = {
  patternProperties: { '^tag(\\.[^.]{1,64}){1,4}$': Type.String({ maxLength: TAG_CHARS_MAX }) },
}

const FilterQuery = Type.Object({ ...TIMES, ...FILTER_QUERY }, { ...strict, ...TAG_QUERY })
export type FilterQuery = Static<typeof FilterQuery>

/** With one id in place of all that stand for the visitor. */
export type AskedFilter = Omit<EventFilter, 'visitorIds' | 'possibleIds'> & {
  readonly visitorId?: string
  readonly possibleVisitorId?: string
}

/** Filters as the client means them; absent ones are left out. Throws ApiError validation_error, or plan_required for scores. */
export function readFilter({ workspace }: Pick<Caller, 'workspace'>, query: FilterQuery): AskedFilter {
  const { before, after, visitorId, possibleVisitorId, ruleId, ip, email, urlHost, ...given } = query
  for (const name of ['suspectMin', 'suspectMax'] as const) {
    if (given[name] === undefined || scoresVisible(workspace.plan)) continue
    throw new ApiError('plan_required', { field: name, message: 'Scores need the Pro plan or above.' })
  }
  for (const [name, id] of Object.entries({ visitorId, possibleVisitorId })) {
    if (id !== undefined && !isVisitorId(id)) throw invalid(name, 'This is no visitor id.')
  }
  if (ruleId !== undefined && !/^rul_[0-9A-Za-z]{20}$/.test(ruleId)) throw invalid('ruleId', 'This is no rule id.')
  const { rest, tags } = apart(given)
  return {
    ...rest,
    ...(Object.keys(tags).length === 0 ? {} : { tags }),
    ...(visitorId === undefined ? {} : { visitorId }),
    ...(possibleVisitorId === undefined ? {} : { possibleVisitorId }),
    ...(ruleId === undefined ? {} : { ruleId }),
    ...(after === undefined ? {} : { after: readMoment(after, 'after') }),
    ...(before === undefined ? {} : { before: readMoment(before, 'before') }),
    ...(ip === undefined ? {} : { ip: readAddressFilter(ip) }),
    ...(email === undefined ? {} : { email: readEmailFilter(email) }),
    ...(urlHost === undefined ? {} : { urlHost: urlHost.toLowerCase() }),
  }
}

/** The filter with all ids that stand for the visitors it names. */
export async function withAllIds(
  { idsOf }: Pick<VisitorReads, 'idsOf'>,
  { workspace, env }: Pick<Caller, 'workspace' | 'env'>,
  { visitorId, possibleVisitorId, ...rest }: AskedFilter,
): Promise<EventFilter> {
  const [visitorIds, possibleIds] = await Promise.all(
    [visitorId, possibleVisitorId].map((id) => (id === undefined ? undefined : idsOf(workspace.id, env, id))),
  )
  return {
    ...rest,
    ...(visitorIds === undefined ? {} : { visitorIds }),
    ...(possibleIds === undefined ? {} : { possibleIds }),
  }
}

/** An address or a range in its canonical spelling. */
export function readAddressFilter(text: string): string {
  const range = normaliseEntry('ip', text)
  if (range === null) throw invalid('ip', 'This is neither an address nor a range.')
  return range
}

/** As it is stored. */
export function readEmailFilter(text: string): string {
  const email = normaliseEntry('email', text)
  if (email === null) throw invalid('email', 'This is no email.')
  return email
}

function apart<T extends object>(given: T): { readonly rest: T; readonly tags: Readonly<Record<string, string>> } {
  const isTag = ([name]: readonly [string, unknown]) => name.startsWith(TAG_PREFIX)
  const entries = Object.entries(given)
  const tags = entries.filter(isTag)
  const [name = ''] = tags[TAGS_MAX] ?? []
  if (name !== '') throw invalid(name, `At most ${TAGS_MAX} of these at once.`)
  return {
    rest: Object.fromEntries(entries.filter((one) => !isTag(one))) as T,
    tags: Object.fromEntries(tags) as Record<string, string>,
  }
}

export const FILTER_MEMBERS: Readonly<Record<string, Fragment>> = {
  visitorId: { description: 'Only events of this visitor.', pattern: '^pv_[0-9A-Za-z]{20}$' },
  possibleVisitorId: {
    description:
      'Only events of new visitors that may be this one. With those of `visitorId` they are all that may be of one device.',
    pattern: '^pv_[0-9A-Za-z]{20}$',
  },
  verdict: { description: 'Only events with this verdict.' },
  bot: { description: 'Only events whose bot signal is raised, or is not.' },
  linkedId: { description: 'Only events of this account.' },
  country: { description: 'Only events from this country, two letters.' },
  platform: { description: 'Only events of this platform, such as `iOS`.' },
  ruleId: {
    description: 'Only events that this rule matched, whether it decided or not.',
    pattern: '^rul_[0-9A-Za-z]{20}$',
  },
  keyKind: { description: 'Only events that came with a key of this kind.' },
  signal: { description: 'Only events with this signal raised.' },
  ip: {
    description:
      'Only events from this address, or from an address of this range, such as `203.0.113.0/24`. Events older than `retention.fullIpDays` have only a network.',
    examples: ['203.0.113.0/24'],
  },
  asn: { description: 'Only events from this autonomous system.' },
  email: { description: 'Only events with this email, in full.', examples: ['ann@shop.example'] },
  urlHost: { description: 'Only events of pages on this host, with its port where the address has one.' },
  label: { description: 'Only events with this label; `none`: without one.' },
  deviceType: { description: 'Only events of devices of this type.' },
  browser: { description: 'Only events of this browser: a family (`Chrome`), or one with its version (`Chrome 147`).' },
  method: { description: 'Only events whose visitor was recognised this way.' },
  suspectMin: { description: 'Only events with a suspect score at least as high. Plan Pro and above.' },
  suspectMax: { description: 'Only events with a suspect score at most as high. Plan Pro and above.' },
  confidenceMin: { description: 'Only events recognised with at least this confidence.' },
  confidenceMax: { description: 'Only events recognised with at most this confidence.' },
  'tag.<key>': {
    description:
      'Only events in whose tag the key has a value with this text; numbers and flags as JSON writes them. `tag.cart.total` is what is inside `cart`. At most eight.',
  },
}
