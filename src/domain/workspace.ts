// Tenancy: workspaces, their settings and their keys (src/docs/contract.md, Tenancy and keys).

import type { Env } from './event.ts'

export type Plan = 'starter' | 'pro' | 'enterprise'
export const PLANS: readonly Plan[] = ['starter', 'pro', 'enterprise']

/**
 * Weights of reasons in place of the standard ones, by `<score>.<reason>` (`ato.new_device`), 0 to 1; 0 switches a reason off.
 */
export type ScoreWeights = Readonly<Record<string, number>>

/** Requests a key may make; null: any number. */
export interface RateLimits {
  readonly serverPerMinute: number | null
  readonly mgmtPerMinute: number | null
  readonly burstPerSecond: number | null
}

const NO_LIMITS: RateLimits = { serverPerMinute: null, mgmtPerMinute: null, burstPerSecond: null }
const PLAN_LIMITS: Readonly<Record<Plan, RateLimits>> = {
  starter: { serverPerMinute: 100, mgmtPerMinute: 30, burstPerSecond: 10 },
  pro: { serverPerMinute: 1_000, mgmtPerMinute: 100, burstPerSecond: 50 },
  enterprise: NO_LIMITS,
}

export interface WorkspaceSettings {
  /** What a public key's answer holds: ids only, or the verdict as well. */
  readonly clientResult: 'id' | 'verdict'
  readonly scoreWeights?: ScoreWeights
  /** Only the plan `enterprise` has its own; what is left out is unlimited. */
  readonly limits?: Partial<RateLimits>
  /** Days, where they are shorter than those of the deployment. */
  readonly retention?: Retention
}

/** As a write names them; `limits: null` lifts them. */
export type WorkspaceSettingsChange = Omit<Partial<WorkspaceSettings>, 'limits'> & {
  readonly limits?: WorkspaceSettings['limits'] | null
}

export interface Workspace {
  readonly id: string
  readonly name: string
  readonly plan: Plan
  readonly apiVersion: string
  readonly settings: WorkspaceSettings
  /** Signs storage tokens; never leaves the service. */
  readonly tokenSecret: string
  /** When an earlier secret was given up as lost: tokens signed with it cannot be told from forged ones. */
  readonly tokensLostAt?: number
  readonly createdAt: number
}

export interface Retention {
  readonly eventsDays?: number
  /** After so long only the network of an event's address is kept. */
  readonly fullIpDays?: number
}

export const rateLimitsOf = ({ plan, settings }: Pick<Workspace, 'plan' | 'settings'>): RateLimits =>
  plan === 'enterprise' ? { ...PLAN_LIMITS[plan], ...settings.limits } : PLAN_LIMITS[plan]

export const API_VERSIONS: readonly string[] = ['2026-11-01']

export type KeyKind = 'public' | 'secret'
export const SCOPES = [
  'identify',
  'events:read',
  'events:write',
  'visitors:read',
  'visitors:write',
  'visitors:delete',
  'rules:read',
  'rules:write',
  'lists:read',
  'lists:write',
  'webhooks:read',
  'webhooks:write',
  'analytics:read',
  'alerts:read',
  'alerts:write',
  'keys:write',
] as const
export type KeyScope = (typeof SCOPES)[number]
/** Those of a key that names none: who may make keys is said in so many words. */
export const DEFAULT_SCOPES: readonly KeyScope[] = SCOPES.filter((scope) => scope !== 'keys:write')

/** A key as it is stored: its text is never kept, only the digest it is found by. */
export interface ApiKey {
  readonly id: string
  readonly workspace: string
  readonly env: Env
  readonly kind: KeyKind
  /** SHA-256 of the whole key text, hex. */
  readonly digest: string
  readonly last4: string
  readonly label: string | null
  /** null: every default scope its kind may have. */
  readonly scopes: readonly KeyScope[] | null
  /** null: any origin. Public keys only. */
  readonly origins: readonly string[] | null
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly revokedAt: number | null
}
