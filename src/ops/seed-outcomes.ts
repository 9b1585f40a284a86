// What came of a visit in a made-up history: signals that fit the visitor, scores by the service's own weights, a verdict by its
// own rules engine. Visits that are alike share one outcome.

import type { Env, IdentityMethod, Signal, StoredEvent } from '../domain/event.ts'
import type { Rule } from '../domain/rule.ts'
import type { Workspace } from '../domain/workspace.ts'
import { scoreEvent } from '../engine/scores.ts'
import { clear, detected, undetermined } from '../engine/signals/evidence.ts'
import { WEIGHTS_VERSION } from '../engine/weights.ts'
import { encodeSnapshot, openSnapshot } from '../rules/snapshot.ts'
import { BOT_TYPES, DEVICES, NETWORKS, type SitePage, VPN_PROVIDERS } from './seed-world.ts'

/** All that rules and scores look at. */
export interface Situation {
  /** Place in BOT_TYPES and VPN_PROVIDERS; -1: none. */
  readonly bot: number
  readonly vpn: number
  readonly tor: boolean
  readonly incognito: boolean
  readonly tampered: boolean
  readonly emulator: boolean
  readonly rooted: boolean
  /** Place in NETWORKS. */
  readonly network: number
  readonly action: SitePage['action']
  /** Before five in the morning, UTC. */
  readonly isNight: boolean
  readonly method: IdentityMethod
  readonly hasAccount: boolean
  readonly isNewForAccount: boolean
  readonly linkedAccounts: number
  readonly isUnsure: boolean
}

export const SEEDED_METHODS: readonly IdentityMethod[] = ['new', 'token', 'exact', 'linked']
const ACTIONS: readonly SitePage['action'][] = ['view', 'login', 'signup', 'checkout']
const CANDIDATES: Readonly<Record<IdentityMethod, number>> = { new: 2, token: 0, exact: 5, linked: 3 }
const flag = (x: boolean): number => (x ? 1 : 0)

/** Equal for situations that end alike. */
export function situationKey(s: Situation): number {
  let key = s.network
  key = key * 4 + s.bot + 1
  key = key * 4 + s.vpn + 1
  key =
    key * 32 + flag(s.tor) + flag(s.incognito) * 2 + flag(s.tampered) * 4 + flag(s.emulator) * 8 + flag(s.rooted) * 16
  key = key * 4 + ACTIONS.indexOf(s.action)
  key = key * 2 + flag(s.isNight)
  key = key * 4 + SEEDED_METHODS.indexOf(s.method)
  key = key * 8 + flag(s.hasAccount) + flag(s.isNewForAccount) * 2 + flag(s.isUnsure) * 4
  return key * 16 + Math.min(15, s.linkedAccounts)
}

const QUIET = 0.9
const onlyIf = (raised: boolean, confidence: number, method: string, source: 'client' | 'server'): Signal =>
  raised ? detected(confidence, [method], source) : source === 'client' ? clear(QUIET, [], source) : undetermined()

function signalsOf(s: Situation): StoredEvent['signals'] {
  return {
    bot:
      s.bot < 0
        ? clear(QUIET, [], 'client')
        : detected(0.9991, s.bot === 0 ? ['headless_ua', 'isbot_ua'] : ['webdriver', 'headless_ua'], 'client'),
    vpn: onlyIf(s.vpn >= 0, 0.95, 'address', 'server'),
    incognito: onlyIf(s.incognito, 0.9, 'storage_quota', 'client'),
    tampered: onlyIf(s.tampered, 0.8, 'worker_platform', 'client'),
    emulator: s.emulator ? detected(0.95, ['virtual_gpu'], 'client') : undetermined(),
    proxy: undetermined(),
    tor: onlyIf(s.tor, 1, 'exit_list', 'server'),
    rootedDevice: s.rooted ? detected(0.9, ['native_flag'], 'client') : undetermined(),
    clonedApp: undetermined(),
    vpnProvider: VPN_PROVIDERS[s.vpn] ?? null,
    botType: BOT_TYPES[s.bot] ?? null,
  }
}

/** An event as it would be decided, with placeholders for what no rule looks at. */
export type Decide = (situation: Situation, tag: StoredEvent['tag']) => StoredEvent

/** `revision` is what the events say they were decided by. */
export function openOutcomes(workspace: Workspace, env: Env, rules: readonly Rule[], revision: number): Decide {
  const ruleset = openSnapshot(encodeSnapshot({ workspace, env, revision, rules }))
  return (s, tag) => {
    const signals = signalsOf(s)
    const confidence = s.isUnsure ? 0.41 : 0.98
    const { scores, reasons } = scoreEvent({
      signals,
      confidence,
      hasAccount: s.hasAccount,
      newDeviceForAccount: s.hasAccount ? s.isNewForAccount : null,
      linkedAccounts: s.linkedAccounts,
      possibleVisitor: false,
      listed: false,
      velocity: null,
      impossibleTravel: false,
    })
    const { facts } = NETWORKS[s.network] as (typeof NETWORKS)[number]
    const { weight: _, ...device } = DEVICES[0] as (typeof DEVICES)[number]
    const timestamp = (s.isNight ? 3 : 12) * 3_600_000
    const event: StoredEvent = {
      workspace: workspace.id,
      env,
      requestId: 'req_00000000000000000000000000',
      visitorId: 'pv_00000000000000000000',
      visitorFound: s.method !== 'new',
      confidence,
      possible: null,
      timestamp,
      firstSeenAt: timestamp,
      lastSeenAt: timestamp,
      device: { ...device, language: 'en-US', timezone: 'UTC' },
      signals,
      scores,
      scoreReasons: reasons,
      ip: { ...facts, address: '192.0.2.1' },
      verdict: null,
      challengeType: null,
      matchedRule: null,
      matchedRules: [],
      monitorMatches: [],
      rulesRevision: revision,
      keyKind: 'public',
      weightsVersion: WEIGHTS_VERSION,
      linkedId: s.hasAccount ? 'user_1' : null,
      email: null,
      tag,
      url: null,
      identity: { method: s.method, anonymitySet: 1, candidates: CANDIDATES[s.method], generation: 1 },
      visitor: { totalVisits: 1, linkedAccounts: s.linkedAccounts, ageSeconds: 0 },
      velocity: null,
      label: null,
      evaluationError: null,
    }
    const { logs: __, ...outcome } = ruleset.evaluate(event, { newDeviceForLinkedId: s.isNewForAccount })
    return { ...event, ...outcome }
  }
}
