// From the files of a source to its table: what kind of file each is, unpacked and read, with the age of the oldest.

import { gunzipSync } from 'node:zlib'
import { addColumns } from './columns.ts'
import { addList } from './lists.ts'
import { addMmdb, isMmdb } from './mmdb.ts'
import { createRanges, type RangesBuilder } from './ranges.ts'
import { BadSource, type SourceName } from './sources.ts'
import { sealTable, type TableInput } from './table.ts'

export interface CompileInput extends TableInput {
  readonly content: Buffer
}

/** Package managers give every file a day in the past: earlier than this it says nothing. */
const CHANGED_AT_MIN = Date.UTC(2000, 0, 1)

function unpack(content: Buffer, bytesMax: number): Buffer {
  if (content[0] !== 0x1f || content[1] !== 0x8b) return content
  try {
    return gunzipSync(content, { maxOutputLength: bytesMax })
  } catch (error) {
    throw new BadSource(`it cannot be unpacked: ${(error as Error).message}`)
  }
}

/** Adds one file; returns when its data was made, as far as anybody says. */
function addInput(ranges: RangesBuilder, source: SourceName, input: CompileInput, bytesMax: number): number | null {
  const content = unpack(input.content, bytesMax)
  const { changedAt, confirmedAt } = input
  const age = changedAt !== null && changedAt >= CHANGED_AT_MIN ? changedAt : confirmedAt
  if (source === 'geo' || source === 'asn') {
    if (isMmdb(content)) return addMmdb(ranges, content, source) ?? age
    addColumns(ranges, content, source)
    return age
  }
  const fallback = source === 'abuse' ? 'abuse' : null
  addList(ranges, content, { name: input.name ?? fallback, commentsAreNames: source === 'vpn' })
  return age
}

/** The table of a source. Throws BadSource, with the file at fault, when its inputs cannot be used. */
export function compileTable(
  source: SourceName,
  inputs: readonly CompileInput[],
  { builtAt, bytesMax }: { readonly builtAt: number; readonly bytesMax: number },
): SharedArrayBuffer {
  const ranges = createRanges()
  let dataAt: number | null = Number.POSITIVE_INFINITY
  for (const input of inputs) {
    try {
      const at = addInput(ranges, source, input, bytesMax)
      dataAt = at === null || dataAt === null ? null : Math.min(dataAt, at)
    } catch (error) {
      const reason = error instanceof BadSource ? error.message : `it cannot be read: ${(error as Error).message}`
      throw new BadSource(`${input.location}: ${reason}`)
    }
  }
  const entries = ranges.entries()
  if (entries === 0) throw new BadSource(`${inputs.map(({ location }) => location).join(', ')}: no entries`)
  const described = inputs.map(({ content: _, ...input }) => input)
  return sealTable(ranges.finish(), { source, dataAt, builtAt, entries, inputs: described })
}
