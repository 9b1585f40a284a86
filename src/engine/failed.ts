// The event of an identification that could not be decided (src/README.md, The protocol, 4): it exists, carries no verdict and says so.

import type { Signal, StoredEvent } from '../domain/event.ts'
import type { IdentifyMeta } from '../domain/identify.ts'
import { requestTime } from '../domain/ids.ts'
import { must } from '../lib/must.ts'

const UNDETERMINED: Signal = {
  state: 'undetermined',
  confidence: 0,
  methods: [],
  source: 'server',
  dataAgeSeconds: null,
}

/** `reason` is a short code, never text of the client's. */
export function failedEvent(meta: IdentifyMeta, visitorId: string, reason: string): StoredEvent {
  const atMs = must(requestTime(meta.requestId), 'a request id with a time')
  return {
    workspace: meta.workspace,
    env: meta.env,
    requestId: meta.requestId,
    visitorId,
    visitorFound: false,
    confidence: 0,
    possible: null,
    timestamp: atMs,
    firstSeenAt: atMs,
    lastSeenAt: atMs,
    device: {
      platform: 'other',
      osVersion: null,
      browser: 'other',
      browserVersion: null,
      gpu: null,
      type: 'other',
      screen: null,
      model: null,
      appVersion: null,
      language: null,
      timezone: null,
    },
    signals: {
      bot: UNDETERMINED,
      vpn: UNDETERMINED,
      incognito: UNDETERMINED,
      tampered: UNDETERMINED,
      emulator: UNDETERMINED,
      proxy: UNDETERMINED,
      tor: UNDETERMINED,
      rootedDevice: UNDETERMINED,
      clonedApp: UNDETERMINED,
      vpnProvider: null,
      botType: null,
    },
    scores: { abuse: 0, ato: 0, bot: 0, suspect: 0 },
    scoreReasons: [],
    ip: {
      address: meta.ip,
      city: null,
      region: null,
      country: null,
      lat: null,
      lng: null,
      timezone: null,
      asn: null,
      asnName: null,
      datacenter: false,
      blocklisted: false,
      blocklists: [],
    },
    verdict: null,
    challengeType: null,
    matchedRule: null,
    matchedRules: [],
    monitorMatches: [],
    rulesRevision: 0,
    keyKind: meta.keyKind,
    weightsVersion: null,
    linkedId: null,
    email: null,
    tag: {},
    url: null,
    identity: { method: 'new', anonymitySet: 0, candidates: 0, generation: 1 },
    visitor: { totalVisits: 0, linkedAccounts: 0, ageSeconds: 0 },
    velocity: null,
    label: null,
    evaluationError: reason,
  }
}
