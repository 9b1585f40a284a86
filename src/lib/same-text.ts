// Compares secrets without telling by the time it takes how much of them is right.

import { createHash, timingSafeEqual } from 'node:crypto'

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

export const sameText = (a: string, b: string): boolean => timingSafeEqual(digestOf(a), digestOf(b))
