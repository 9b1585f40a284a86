// What endpoints take from their caller: where it works, and who a command says gave it.

import { makeObjectId, type RandomBytes, seededBytes } from '../domain/ids.ts'
import type { Caller } from '../records/auth.ts'
import type { KeyedCall } from './routes.ts'

export const callerPlaceOf = ({ key, env }: Caller) => ({ workspace: key.workspace, env })
export const commandOf = (caller: Caller) => ({ ...callerPlaceOf(caller), actor: caller.key.id })

/** The id of what a call makes: of a repeated call the same. */
export const newId = ({ seed }: Pick<KeyedCall, 'seed'>, prefix: string, random: RandomBytes): string =>
  makeObjectId(prefix, seed === null ? random : seededBytes(seed))
