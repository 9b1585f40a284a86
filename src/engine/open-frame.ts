// From the bytes of a record of `identifications` to what the partition decides: a case, or a command in the order of cases.

import type { Parsers } from '../identity/parsers.ts'
import type { AddressFacts } from '../ipintel/addresses.ts'
import { decodeAnnotation } from '../records/identification.ts'
import { openCase } from './case.ts'
import type { Frame } from './frames.ts'
import type { Opened } from './lookup.ts'
import { openOrder } from './orders.ts'

export function openFrame(frame: Frame, parsers: Parsers, locate: (ip: string) => AddressFacts): Opened {
  const { seq, bytes } = frame
  try {
    if (frame.attached !== undefined) return openCase(frame, parsers, locate)
    const order = openOrder(seq, bytes)
    if (order !== null) return order
    const annotation = decodeAnnotation(bytes)
    if (annotation !== null) return { seq, annotation: { ...annotation, seq } }
    return openCase(frame, parsers, locate)
  } catch {
    return { seq, broken: 'unreadable' }
  }
}
