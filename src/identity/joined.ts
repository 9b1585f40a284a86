// One visitor out of several records of it: what those that were merged have seen, each by itself.

import type { Recorded } from '../domain/event.ts'
import { joinAccounts } from './linked-accounts.ts'
import { DEVICES_MAX, IPS_MAX, type SeenDevice, type VisitorState } from './visitor.ts'

const keyOf = ({ platform, browser, gpu }: SeenDevice): string => JSON.stringify([platform, browser, gpu])

/** The first record's id with everybody's visits. What comes first is of the record that was seen last. */
export function joinVisitors(records: readonly [VisitorState, ...VisitorState[]]): VisitorState {
  const [survivor] = records
  const newest = [...records].sort((a, b) => b.lastSeenAt - a.lastSeenAt)
  const devices = new Map(newest.flatMap((one) => one.devices).map((device) => [keyOf(device), device]))
  const sum = (of: (one: VisitorState) => number) => records.reduce((total, one) => total + of(one), 0)
  return {
    ...survivor,
    firstSeenAt: Math.min(...records.map((one) => one.firstSeenAt)),
    lastSeenAt: newest[0]?.lastSeenAt ?? survivor.lastSeenAt,
    totalVisits: sum((one) => one.totalVisits),
    tokenVisits: sum((one) => one.tokenVisits),
    devices: [...devices.values()].slice(0, DEVICES_MAX),
    ips: [...new Set(newest.flatMap((one) => one.ips))].slice(0, IPS_MAX),
    verdicts: {
      allow: sum((one) => one.verdicts.allow),
      challenge: sum((one) => one.verdicts.challenge),
      block: sum((one) => one.verdicts.block),
    },
    lastVerdict: newest[0]?.lastVerdict ?? null,
    accounts: records.map((one) => one.accounts).reduce(joinAccounts),
  }
}

/** What the record of one of them will count with a visit at `atMs`. */
export const recordedWith = ({ totalVisits, firstSeenAt, lastSeenAt }: VisitorState, atMs: number): Recorded => ({
  totalVisits: totalVisits + 1,
  firstSeenAt: Math.min(firstSeenAt, atMs),
  lastSeenAt: Math.max(lastSeenAt, atMs),
})
