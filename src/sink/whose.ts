// Whose a refused row is that stands in quarantine as it came, in SQL.

import { holderIn } from '../events/detail-sql.ts'
import { COLUMNS } from '../events/row.ts'

const placeIn = (column: (typeof COLUMNS)[number]): number => COLUMNS.indexOf(column) + 1

export const REFUSED_VISITOR = `JSONExtractString(raw, ${placeIn('visitor_id')})`
export const REFUSED_SEQ = `JSONExtractUInt(raw, ${placeIn('log_seq')})`
/** That it names the visitor is not enough: others were compared with it. */
export const REFUSED_OF = `position(raw, {visitor:String}) > 0 AND (
  NOT isValidJSON(raw) OR ${REFUSED_VISITOR} = {visitor:String} OR
  ${holderIn(`JSONExtractString(raw, ${placeIn('detail')})`)} = {visitor:String})`
