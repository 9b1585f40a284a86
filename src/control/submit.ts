// The way into the control plane: append a command, wait until it has been applied, come back with its outcome.

import type { Bus } from '../bus/bus.ts'
import { ApiError } from '../domain/errors.ts'
import { makeCommandId, type RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { pollUntil, whenAvailable } from '../lib/poll.ts'
import type { Log } from '../log/log.ts'
import {
  COMMAND_BYTES_MAX,
  COMMAND_OUTCOME,
  type Command,
  type CommandDraft,
  type CommandOutcome,
  encodeCommand,
  homeScope,
} from '../records/commands.ts'
import { onHint } from '../records/hints.ts'

const WAIT_MS_MAX = 5_000
const POLL_MS = 100
const RETRY_AFTER_SECONDS = 2
/** Each waiting request holds a place; beyond this the control plane is not keeping up anyway. */
const WAITING_MAX = 1_000

export interface SubmitNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
}

export interface Submitter {
  /**
   * Resolves with what applying the command came to; a refusal is an outcome as well.
   * Throws ApiError unavailable when that is not known within 5 s (it may still be applied), payload_too_large when the
   * command does not fit a record.
   */
  submit(draft: CommandDraft): Promise<CommandOutcome>
  close(): void
}

export type AcceptedCommand = Extract<CommandOutcome, { readonly ok: true }>

/** The outcome of a command that was applied. Throws the ApiError a refusal stands for. */
export function accepted(outcome: CommandOutcome): AcceptedCommand {
  if (outcome.ok) return outcome
  const { code, message, field } = outcome
  throw new ApiError(code, {
    ...(message === undefined ? {} : { message }),
    ...(field === undefined ? {} : { field }),
  })
}

export function openSubmit({ log, kv, bus, clock, random }: SubmitNeeds): Submitter {
  const waiting = new Map<string, (outcome: CommandOutcome) => void>()
  const unsubscribe = onHint(bus, 'control.applied', ({ commandId, outcome }) => waiting.get(commandId)?.(outcome))

  async function append(command: Command): Promise<void> {
    const bytes = encodeCommand(command)
    if (bytes.length > COMMAND_BYTES_MAX) throw new ApiError('payload_too_large')
    try {
      await log.append('changes', 0, [bytes])
    } catch (error) {
      throw error instanceof Unavailable ? unavailable() : error
    }
  }

  /** Resolves with null when the time is over. */
  function poll(command: Command, signal: AbortSignal): Promise<CommandOutcome | null> {
    const ask = whenAvailable(async () => {
      const [stored] = await kv.get<CommandOutcome>(homeScope(command), [[COMMAND_OUTCOME, command.id]])
      return stored?.value ?? null
    })
    return pollUntil(clock, { forMs: WAIT_MS_MAX, everyMs: POLL_MS, pauseFirst: true }, ask, signal)
  }

  return {
    async submit(draft) {
      if (waiting.size >= WAITING_MAX) throw unavailable()
      const at = clock.now()
      const command = { ...draft, id: makeCommandId(at, random), at } as Command
      const settled = new AbortController()
      const hinted = new Promise<CommandOutcome>((resolve) => waiting.set(command.id, resolve))
      try {
        await append(command)
        const outcome = await Promise.race([hinted, poll(command, settled.signal)])
        if (outcome === null) throw unavailable()
        return outcome
      } finally {
        settled.abort()
        waiting.delete(command.id)
      }
    },
    close: unsubscribe,
  }
}

const unavailable = () => new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })
