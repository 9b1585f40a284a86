// What every backend of the limits refuses, so that all of them refuse the same.
import { LIMIT_MAX, type RateRule, RULES_MAX, SLIDING_LIMIT_MAX, WINDOW_MS_MAX } from './limits.ts'

const KEY = /^[\w.:/-]{1,200}$/
const NAME = /^[\w.:/-]{1,64}$/

export function checkTake(key: string, rules: readonly RateRule[], cost: number): void {
  if (!KEY.test(key)) throw new RangeError(`not a key: ${JSON.stringify(key)}`)
  if (rules.length === 0 || rules.length > RULES_MAX) throw new RangeError(`a take has 1 to ${RULES_MAX} rules`)
  if (!Number.isSafeInteger(cost) || cost < 0) throw new RangeError(`not a cost: ${cost}`)
  const seen = new Set<string>()
  for (const rule of rules) {
    const { name, kind, limit, windowMs } = rule
    const limitMax = kind === 'sliding' ? SLIDING_LIMIT_MAX : LIMIT_MAX
    if (!NAME.test(name)) throw new RangeError(`not a name: ${JSON.stringify(name)}`)
    if (!Number.isInteger(limit) || limit < 0 || limit > limitMax) throw new RangeError(`not a limit: ${limit}`)
    if (!Number.isInteger(windowMs) || windowMs < 1 || windowMs > WINDOW_MS_MAX) {
      throw new RangeError(`not a window: ${windowMs} ms`)
    }
    seen.add(counterName(rule))
  }
  if (seen.size < rules.length) throw new RangeError('two rules share a counter')
}

/** What a rule counts under, apart from the key. */
export const counterName = ({ name, kind, windowMs }: RateRule): string =>
  `${kind === 'fixed' ? 'f' : 's'}${windowMs}:${name}`
