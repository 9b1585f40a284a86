// What a process needs to call receivers: the guard, the connections behind it, and what opens their secrets.

import { readFileSync } from 'node:fs'
import type { Cidr } from '../domain/ip.ts'
import type { Clock } from '../lib/clock.ts'
import { Unreadable } from '../lib/failures.ts'
import type { Lifetime } from '../lib/lifetime.ts'
import type { Sealer } from '../lib/sealed.ts'
import { type Attempts, openAttempts } from './attempt.ts'
import { type AddressGuard, openAddressGuard, openResolve } from './guard.ts'
import { type Mailer, type MailSettings, openMailer } from './mail.ts'
import { openPoster } from './post.ts'

export interface OutgoingSettings {
  /** '': none. */
  readonly extraCaFile: string
  readonly allowPrivate: readonly Cidr[]
  readonly mail: MailSettings
}

export interface OutgoingNeeds {
  readonly clock: Clock
  readonly sealer: Sealer
  readonly lifetime: Lifetime
  readonly version: string
  readonly settings: OutgoingSettings
}

export interface Outgoing {
  readonly guard: AddressGuard
  readonly attempts: Attempts
  readonly sealer: Sealer
  /** null: nobody is written to. */
  readonly mailer: Mailer | null
}

/** Throws Unreadable for a file of authorities that cannot be read. */
export function openOutgoing(needs: OutgoingNeeds): Outgoing {
  const { clock, sealer, lifetime, version, settings } = needs
  const { extraCaFile } = settings
  const guard = openAddressGuard(settings.allowPrivate, openResolve())
  const poster = openPoster({ guard, clock, extraCa: extraCaFile === '' ? '' : readCa(extraCaFile) })
  lifetime.onClose(() => poster.close())
  const mailer = openMailer(settings.mail)
  return {
    guard,
    sealer,
    mailer,
    attempts: openAttempts({ poster, sealer, clock, userAgent: `Fingerpost-Webhooks/${version}` }),
  }
}

function readCa(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new Unreadable(`webhooks.extraCaFile: ${path} cannot be read`, { cause })
  }
}
