// What SQL reads of the column `detail`: the private keys under which events/detail.ts writes it.

/** Whose record counts a visit: the alias's where the event carries the survivor's name. */
export const HOLDER = `if(position(detail, '"own":') > 0, JSONExtractString(detail, 'own'), visitor_id)`

/** The generation of the token that was handed out. */
export const GENERATION = "greatest(1, JSONExtractUInt(detail, 'gen'))"

/** Ids of the rules that matched while they were monitored; one row each, so it stands beside HAS_MONITORED. */
export const MONITORED_RULE = "JSONExtractString(arrayJoin(JSONExtractArrayRaw(detail, 'mon')), 'id')"
export const HAS_MONITORED = `position(detail, '"mon":') > 0`

/** The record's own number of visits and times, where the columns have those of several records: `whole` elsewhere. */
const recorded = (place: number, whole: string, read: (value: string) => string) =>
  `if(JSONHas(detail, 'rec'), ${read(`JSONExtractInt(detail, 'rec', ${place})`)}, ${whole})`
const moment = (value: string) => `fromUnixTimestamp64Milli(${value}, 'UTC')`
export const RECORDED_VISITS = recorded(1, 'total_visits', (value) => `toUInt32(${value})`)
export const RECORDED_FIRST_SEEN = recorded(2, 'first_seen_at', moment)
export const RECORDED_LAST_SEEN = recorded(3, 'last_seen_at', moment)

/** The detail of an event without whom it may be of besides; that is never its first member. */
export const WITHOUT_POSSIBLE = `replaceRegexpOne(detail, ',"may":\\\\[[^\\\\]]*\\\\]', '')`

/** The detail of an event that counts in the record of the visitor it names. Neither is the first member. */
export const WITHOUT_HOLDER = `replaceRegexpOne(replaceRegexpOne(detail, ',"own":"[^"]*"', ''), ',"rec":\\\\[[0-9,]*\\\\]', '')`

/** The holder in a detail that is a member of a refused row. */
export const holderIn = (detail: string): string => `JSONExtractString(${detail}, 'own')`
/** Whom the visitor may be besides, in such a detail. */
export const possibleIn = (detail: string): string => `JSONExtractString(${detail}, 'may', 1)`
