// What changed between two texts, line by line: the longest common subsequence, which is quick enough for a rule.

export interface DiffLine {
  readonly side: 'same' | 'added' | 'removed'
  readonly text: string
}

const LINES_MAX = 2_000

/** Texts that are too long to compare are shown as one taken away and one added. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const a = before.split('\n')
  const b = after.split('\n')
  if (a.length > LINES_MAX || b.length > LINES_MAX) {
    return [
      ...a.map((text) => ({ side: 'removed', text }) as const),
      ...b.map((text) => ({ side: 'added', text }) as const),
    ]
  }
  const width = b.length + 1
  const common = new Uint16Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * width + j
      common[at] =
        a[i] === b[j] ? (common[at + width + 1] ?? 0) + 1 : Math.max(common[at + width] ?? 0, common[at + 1] ?? 0)
    }
  }
  const lines: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    const [old, fresh] = [a[i], b[j]]
    if (i < a.length && j < b.length && old === fresh) {
      lines.push({ side: 'same', text: old ?? '' })
      i++
      j++
    } else if (
      j >= b.length ||
      (i < a.length && (common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0))
    ) {
      lines.push({ side: 'removed', text: old ?? '' })
      i++
    } else {
      lines.push({ side: 'added', text: fresh ?? '' })
      j++
    }
  }
  return lines
}
