// Visitors that a body names besides the one it is about, such as whom a new visitor may be. Each has an entry of its own beside
// the body, under its own name, so that its erasure finds what it is to be taken out of.

import type { Kv, Scope } from '../kv/kv.ts'
import { FAILED_KEPT_MS, type Payload, payloadKey } from '../records/deliveries.ts'
import type { OutboxEntries } from './match.ts'

const NAMES = /pv_[0-9A-Za-z]{20}/g
const NOBODY = 'pv_00000000000000000000'

const textsOf = ({ a, b, slack }: Payload): string[] => [a, b, slack?.body].filter((text) => text !== undefined)

/** The entries of those whom a body names; `payloadId` as payloadIdOf makes it. */
export function mentionsIn(payloadId: string, payload: Payload): { readonly id: string; readonly payload: Payload }[] {
  const [workspace, env, own, eventId] = payloadId.split('/')
  const named = new Set(textsOf(payload).flatMap((text) => text.match(NAMES) ?? []))
  named.delete(NOBODY)
  if (own !== undefined) named.delete(own)
  return [...named].map((id) => ({ id: `${workspace}/${env}/${id}/${eventId}`, payload: { of: payloadId } }))
}

/** Of the bodies from a place on. */
export function addMentions({ payloads }: OutboxEntries, from: number): void {
  for (const { id, payload, scope } of payloads.slice(from)) {
    for (const mention of mentionsIn(id, payload)) payloads.push({ ...mention, scope, about: null })
  }
}

/** The same body about nobody in the place of the visitor. */
function without(text: string, visitorId: string): string {
  const possible = `"possibleVisitorId":"${visitorId}"`
  return text.replaceAll(possible, '"possibleVisitorId":null').replaceAll(visitorId, NOBODY)
}

/** Takes a visitor out of the bodies that name it. May be done again. */
export async function forgetMentions(
  kv: Pick<Kv, 'get' | 'commit'>,
  scope: Scope,
  visitorId: string,
  payloadIds: readonly string[],
): Promise<void> {
  const found = await kv.get<Payload>(scope, payloadIds.map(payloadKey))
  const commits = found.flatMap((entry) => {
    if (entry === null) return []
    const { a, b, slack, ...rest } = entry.value
    const value: Payload = {
      ...rest,
      ...(a === undefined ? {} : { a: without(a, visitorId) }),
      ...(b === undefined ? {} : { b: without(b, visitorId) }),
      ...(slack === undefined ? {} : { slack: { ...slack, body: without(slack.body, visitorId) } }),
    }
    // How long it was kept is not known here.
    return [
      { scope, check: [[entry.key, entry.version] as const], put: [{ key: entry.key, value, ttlMs: FAILED_KEPT_MS }] },
    ]
  })
  const done = await kv.commit(commits)
  const again = commits.filter((_, i) => done[i] !== true).map(({ check }) => check[0]?.[0][1] ?? '')
  // It was prolonged just now.
  if (again.length > 0) await forgetMentions(kv, scope, visitorId, again)
}
