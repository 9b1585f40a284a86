// From the bytes of a record of `identifications` to what the partition decides: a visit, or a command between visits.

import type { Parsers } from '../identity/parsers.ts'
import type { AddressFacts } from '../ipintel/addresses.ts'
import { type Decoded, decodeAnnotation } from '../records/identification.ts'
import type { Frame } from './frames.ts'
import type { OpenedRecord } from './lookup.ts'
import { decodeFrame, unreadVisitOf, visitOf } from './visit.ts'
import { openVisitorCommand } from './visitor-commands.ts'

function openCommand({ seq, bytes }: Frame): OpenedRecord | null {
  const order = openVisitorCommand(seq, bytes)
  if (order !== null) return order
  const annotation = decodeAnnotation(bytes)
  return annotation === null ? null : { seq, annotation: { ...annotation, seq } }
}

/** One that `isGivenUp`, since it has cost a thread before, is not read: it may cost another one. */
export function openFrame(
  frame: Frame,
  parsers: Parsers,
  locate: (ip: string) => AddressFacts,
  isGivenUp = false,
): OpenedRecord {
  const { seq } = frame
  let decoded: Decoded
  try {
    const command = frame.attached === undefined ? openCommand(frame) : null
    if (command !== null) return command
    decoded = decodeFrame(frame)
  } catch {
    return { seq, broken: 'unreadable' }
  }
  if (isGivenUp) return { ...unreadVisitOf(seq, decoded), failed: 'repeated_failure', why: 'given up on' }
  try {
    return visitOf(seq, decoded, parsers, locate)
  } catch (error) {
    return { ...unreadVisitOf(seq, decoded), failed: 'evaluation_failed', why: String(error) }
  }
}
