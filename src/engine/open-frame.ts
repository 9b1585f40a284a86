// From the bytes of a record of `identifications` to what the partition decides: a case, or a command in the order of cases.

import type { Parsers } from '../identity/parsers.ts'
import type { AddressFacts } from '../ipintel/addresses.ts'
import { decodeAnnotation } from '../records/identification.ts'
import type { Frame } from './frames.ts'
import type { OpenedRecord } from './lookup.ts'
import { openVisit } from './visit.ts'
import { openVisitorCommand } from './visitor-commands.ts'

export function openFrame(frame: Frame, parsers: Parsers, locate: (ip: string) => AddressFacts): OpenedRecord {
  const { seq, bytes } = frame
  try {
    if (frame.attached !== undefined) return openVisit(frame, parsers, locate)
    const order = openVisitorCommand(seq, bytes)
    if (order !== null) return order
    const annotation = decodeAnnotation(bytes)
    if (annotation !== null) return { seq, annotation: { ...annotation, seq } }
    return openVisit(frame, parsers, locate)
  } catch {
    return { seq, broken: 'unreadable' }
  }
}
