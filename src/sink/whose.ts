// Whose a stored event is, in SQL, and whose a refused row is that stands in quarantine as it came.

import { COLUMNS } from '../events/row.ts'

const placeIn = (column: (typeof COLUMNS)[number]): number => COLUMNS.indexOf(column) + 1

/** Whose record counts a visit: the alias's where the event carries the survivor's name. */
export const HOLDER = "if(position(detail, '\"own\":') > 0, JSONExtractString(detail, 'own'), visitor_id)"

export const REFUSED_VISITOR = `JSONExtractString(raw, ${placeIn('visitor_id')})`
export const REFUSED_SEQ = `JSONExtractUInt(raw, ${placeIn('log_seq')})`
/** That it names the visitor is not enough: others were compared with it. */
export const REFUSED_OF = `position(raw, {visitor:String}) > 0 AND (
  NOT isValidJSON(raw) OR ${REFUSED_VISITOR} = {visitor:String} OR
  JSONExtractString(JSONExtractString(raw, ${placeIn('detail')}), 'own') = {visitor:String})`
