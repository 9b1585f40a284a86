// The limits of the port, the same for every backend.
import { assert } from '../lib/must.ts'
import { APPEND_BYTES_MAX, APPEND_RECORDS_MAX, RECORD_BYTES_MAX, type ReadLimits, type Seq } from './log.ts'

/** Throws RangeError for what no append may hold. */
export function checkRecords(records: readonly Uint8Array[]): void {
  if (records.length < 1 || records.length > APPEND_RECORDS_MAX) {
    throw new RangeError(`an append takes 1 to ${APPEND_RECORDS_MAX} records, not ${records.length}`)
  }
  let bytes = 0
  for (const record of records) {
    assert(record instanceof Uint8Array, 'a record is a Uint8Array')
    if (record.length > RECORD_BYTES_MAX) {
      throw new RangeError(`a record takes up to ${RECORD_BYTES_MAX} bytes, not ${record.length}`)
    }
    bytes += record.length
  }
  if (bytes > APPEND_BYTES_MAX) throw new RangeError(`an append takes up to ${APPEND_BYTES_MAX} bytes, not ${bytes}`)
}

/** Throws RangeError for a read that cannot be. */
export function checkLimits(after: Seq, { recordsMax, bytesMax, waitMsMax }: ReadLimits): void {
  const valid = Number.isSafeInteger(after) && after >= 0 && recordsMax >= 1 && bytesMax >= 1 && waitMsMax >= 0
  if (!valid) throw new RangeError('a read starts at a seq and takes recordsMax and bytesMax from 1, waitMsMax from 0')
}

/** Throws RangeError for a trim that cannot be. */
export function checkTrim(upTo: Seq): void {
  if (!Number.isSafeInteger(upTo) || upTo < 0) throw new RangeError(`a trim goes up to a seq, not ${upTo}`)
}
