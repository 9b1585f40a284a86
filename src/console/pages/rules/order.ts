// Which priorities have to change so that a rule is asked at another place.

export interface Placed {
  readonly id: string
  readonly priority: number
}

const STEP = 10

/**
 * The fewest writes: where there is room between its new neighbours only the rule itself, else those below it as well. `rules` are in the
 * order they are asked.
 */
export function movesFor(rules: readonly Placed[], from: number, to: number): readonly Placed[] {
  const moved = rules[from]
  if (moved === undefined || from === to) return []
  const rest = rules.filter((_, i) => i !== from)
  const above = rest[to - 1]
  const below = rest[to]
  if (below === undefined) return above === undefined ? [] : [{ id: moved.id, priority: above.priority + STEP }]
  if (above === undefined) return [{ id: moved.id, priority: below.priority - STEP }]
  if (below.priority - above.priority > 1) {
    return [{ id: moved.id, priority: Math.floor((above.priority + below.priority) / 2) }]
  }
  const moves: Placed[] = [{ id: moved.id, priority: above.priority + STEP }]
  let last = above.priority + STEP
  for (const one of rest.slice(to)) {
    if (one.priority > last) break
    last += STEP
    moves.push({ id: one.id, priority: last })
  }
  // Those below make room first, so that the order holds at every step.
  return moves.reverse()
}
