// The back end of the console: its routes, and the guard that lets sessions act on the routes of the API.

import type { Submitter } from '../../control/submit.ts'
import type { RandomBytes } from '../../domain/ids.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Sealer } from '../../lib/sealed.ts'
import type { Limits } from '../../limits/limits.ts'
import type { KeyDirectory } from '../../records/key-directory.ts'
import type { ApiRoute } from '../routes.ts'
import { accountRoutes } from './account.ts'
import { openSignInLimits } from './attempts.ts'
import { openAuthenticators } from './authenticators.ts'
import { openCookies } from './cookies.ts'
import { type EntranceNeeds, entranceRoutes } from './entrance.ts'
import { openGuard, type SessionGuard } from './guard.ts'
import { memberRoutes } from './members.ts'
import { oidcRoutes } from './oidc.ts'
import { openPasswords, type Passwords } from './passwords.ts'
import type { OidcSettings } from './provider.ts'
import { openSessions } from './sessions.ts'

export interface ConsoleNeeds extends Pick<EntranceNeeds, 'serviceUrl'> {
  readonly kv: Kv
  readonly limits: Pick<Limits, 'take'>
  readonly clock: Pick<Clock, 'now'>
  readonly random: RandomBytes
  readonly submit: Submitter['submit']
  readonly directory: Pick<KeyDirectory, 'workspace' | 'isFresh' | 'isWiped'>
  readonly sealer: Pick<Sealer, 'seal' | 'open' | 'sign'>
  /** Where the console is, without a path; its port may be known only when requests come. */
  readonly address: () => string
  readonly isSecure: boolean
  /** null: people sign in with passwords only. */
  readonly oidc: OidcSettings | null
  readonly logger: Pick<Logger, 'warn'>
  readonly passwords?: Passwords
}

export interface Console {
  readonly routes: readonly ApiRoute[]
  readonly guard: SessionGuard
}

export function openConsole(needs: ConsoleNeeds): Console {
  const { kv, limits, clock, random, directory, sealer, address, isSecure, oidc } = needs
  const sessions = openSessions(kv, clock, random)
  const cookies = openCookies(isSecure)
  const guard = openGuard({ kv, sessions, directory, cookies, origin: () => new URL(address()).origin })
  const shared = {
    ...needs,
    ...{ sessions, cookies, guard },
    attempts: openSignInLimits(limits, sealer, random),
    passwords: needs.passwords ?? openPasswords(random),
    authenticators: openAuthenticators(kv, sealer, clock, random),
    oidc: oidc === null ? null : { label: oidc.label },
  }
  const withProvider = oidc === null ? [] : oidcRoutes({ ...shared, oidc })
  const routes = [...entranceRoutes(shared), ...withProvider, ...accountRoutes(shared), ...memberRoutes(shared)]
  return { routes, guard }
}
