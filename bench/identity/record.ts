// A visit as the ingress would write it to the log, for what decides visits in this process.

import { EVIDENCE_HEADERS, type TokenClaims } from '../../src/domain/identify.ts'
import { makeRequestId } from '../../src/domain/ids.ts'
import { encodeIdentification } from '../../src/records/identification.ts'
import { encodeSnapshot, openSnapshot } from '../../src/rules/snapshot.ts'
import type { Rng } from '../../test/helpers/rng.ts'
import type { Visit } from './population.ts'

export const WORKSPACE = {
  id: 'ws_bench',
  plan: 'enterprise',
  settings: { clientResult: 'id' },
  tokenSecret: 'a secret that only this benchmark uses',
  apiVersion: '2026-11-01',
} as const
export const ENV = 'test'

/** Without a rule. */
export const openBareRuleset = () =>
  openSnapshot(encodeSnapshot({ workspace: WORKSPACE, env: ENV, revision: 1, rules: [] }))

/** The headers that are evidence. */
export function evidenceOf(visit: Visit): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const name of EVIDENCE_HEADERS) {
    const value = visit.headers[name]
    if (value !== undefined) headers[name] = value
  }
  return headers
}

/** `storageToken` is what was sent, `token` what it proves. */
export function recordOf(
  visit: Visit,
  storageToken: string | null,
  token: TokenClaims | null,
  random: Rng['bytes'],
): Uint8Array {
  const bytes = new TextEncoder().encode(JSON.stringify({ ...visit.body, storageToken }))
  return encodeIdentification(
    {
      requestId: makeRequestId(visit.atMs, random),
      acceptedAt: visit.atMs,
      workspace: WORKSPACE.id,
      env: ENV,
      keyKind: 'public',
      ip: visit.ip,
      headers: evidenceOf(visit),
      token,
      tokenForged: false,
      replyTo: 'bench',
    },
    bytes,
  )
}
