// A port whose calls are timed and counted: how long each took, and whether what is behind it answered.

import type { Clock } from './clock.ts'
import { Unavailable } from './failures.ts'

export interface CallFigures {
  /** A refusal is an answer; not to be reached is a failure. */
  called(seconds: number, failed: boolean): void
}

/** The same port, of which calls of these names are told. */
export function measured<Port extends object, Name extends keyof Port>(
  port: Port,
  names: readonly Name[],
  clock: Pick<Clock, 'monotonic'>,
  figures: CallFigures,
): Port {
  const timed: Partial<Port> = {}
  for (const name of names) {
    const call = port[name] as (...args: unknown[]) => Promise<unknown>
    timed[name] = ((...args: unknown[]) => {
      const from = clock.monotonic()
      const told = (failed: boolean) => figures.called((clock.monotonic() - from) / 1_000, failed)
      const answer = call(...args)
      answer.then(
        () => told(false),
        (error) => told(error instanceof Unavailable),
      )
      return answer
    }) as Port[Name]
  }
  // Getters of the port stay what they are.
  return Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(port), ...Object.getOwnPropertyDescriptors(timed) },
  ) as Port
}
