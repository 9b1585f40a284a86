// The end of a turn of the event loop, in phases: what has become known is told to those who wait for it, what sockets and other threads
// brought is taken together, then what follows from it goes to the log together, then what is for other threads leaves together. Promises
// settle between two phases.

/** In the order in which they come. */
export const PHASES = ['tell', 'take', 'append', 'send'] as const
export type Phase = (typeof PHASES)[number]

/** Runs `act` when its phase comes: in this turn, or in the next where it is over. */
export type AtEndOfTurn = (act: () => void) => void

export type Turn = Readonly<Record<Phase, AtEndOfTurn>>

export interface TurnHooks {
  /** The first of its acts was asked for. */
  began(): void
  /** Its last act is over and none is waiting. */
  ended(): void
}
const NO_HOOKS: TurnHooks = { began: () => undefined, ended: () => undefined }

/** `later` runs what it is given in the order it was given, behind whatever runs now, and lets promises settle after each: `setImmediate`. */
export function openTurn(
  later: (run: () => void) => void = setImmediate,
  { began, ended }: TurnHooks = NO_HOOKS,
): Turn {
  const waiting: Record<Phase, (() => void)[]> = { tell: [], take: [], append: [], send: [] }
  /** How many of the phases of this turn are still to come; 0: no end of a turn is planned. */
  let left = 0

  function plan(): void {
    left = PHASES.length
    began()
    for (const phase of PHASES) later(() => run(phase))
  }

  function run(phase: Phase): void {
    left--
    const acts = waiting[phase]
    waiting[phase] = []
    for (const act of acts) act()
    if (left > 0) return
    if (PHASES.some((one) => waiting[one].length > 0)) plan()
    else ended()
  }

  const at =
    (phase: Phase): AtEndOfTurn =>
    (act) => {
      waiting[phase].push(act)
      if (left === 0) plan()
    }
  return { tell: at('tell'), take: at('take'), append: at('append'), send: at('send') }
}
