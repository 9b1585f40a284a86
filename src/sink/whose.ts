// Whose a refused row is that stands in quarantine as it came, in SQL.

import { holderIn, possibleIn } from '../events/detail-sql.ts'
import { COLUMNS } from '../events/row.ts'

const placeIn = (column: (typeof COLUMNS)[number]): number => COLUMNS.indexOf(column) + 1

const DETAIL = `JSONExtractString(raw, ${placeIn('detail')})`

export const REFUSED_VISITOR = `JSONExtractString(raw, ${placeIn('visitor_id')})`
export const REFUSED_SEQ = `JSONExtractUInt(raw, ${placeIn('log_seq')})`
/** That it names the visitor is not enough: others were compared with it. */
export const REFUSED_OF = `position(raw, {visitor:String}) > 0 AND (
  NOT isValidJSON(raw) OR ${REFUSED_VISITOR} = {visitor:String} OR
  ${holderIn(DETAIL)} = {visitor:String})`

/** It is another's, and names the visitor as whom that one may be. */
export const REFUSED_POSSIBLE = `position(raw, {possible:String}) > 0 AND isValidJSON(raw)
  AND ${possibleIn(DETAIL)} = {possible:String}`
/** The row without that name. The detail is text within text, and what others wrote may look like it. */
export const REFUSED_WITHOUT_POSSIBLE = `replaceRegexpAll(raw,
  concat(',\\\\\\\\"may\\\\\\\\":\\\\[\\\\\\\\"', {possible:String}, '\\\\\\\\",[0-9]+\\\\]'), '')`
