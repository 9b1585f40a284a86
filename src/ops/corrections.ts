// `fingerpost corrections export`: pairs that were merged or split by hand, with what is kept of both sides, so that recognition
// can be measured on them. Accounts are left out, and of addresses there are hashes.

import { ENVS, type Env } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import type { VisitorState } from '../identity/visitor.ts'
import { unpackVisitor } from '../identity/visitor-record.ts'
import type { Kv } from '../kv/kv.ts'
import { type Correction, readCorrections } from '../records/aliases.ts'
import { partitionScope, visitorKey } from '../records/partitions.ts'
import { unpackHeldVisitor } from '../records/visitors.ts'
import { listWorkspaces } from '../records/workspaces.ts'

/** One side of a pair: its record without accounts. null: forgotten, or all of its visits were another's. */
export type CorrectionSide = Omit<VisitorState, 'accounts' | 'ips'> | null

/** A line of the export. */
export interface ExportedCorrection {
  readonly workspace: string
  readonly env: Env
  /** They were one device, or one visitor had been two. */
  readonly same: boolean
  /** RFC 3339. */
  readonly at: string
  readonly visitors: Correction['visitors']
  readonly sides: readonly [CorrectionSide, CorrectionSide]
}

/** Every pair of a deployment, oldest first in each environment. */
export async function* exportCorrections(
  kv: Pick<Kv, 'get' | 'scan'>,
  partitions: number,
): AsyncGenerator<ExportedCorrection> {
  async function side(workspace: string, env: Env, visitorId: string): Promise<CorrectionSide> {
    const scope = partitionScope(homePartition(visitorId, partitions))
    const [entry] = await kv.get<Uint8Array>(scope, [visitorKey(workspace, env, visitorId)])
    if (!entry) return null
    const { accounts: _, ips: __, ...state } = unpackVisitor(unpackHeldVisitor(entry.value).state)
    return state.totalVisits === 0 ? null : state
  }
  for (const { id: workspace } of await listWorkspaces(kv)) {
    for (const env of ENVS) {
      for await (const { same, at, visitors } of readCorrections(kv, workspace, env)) {
        const [one, other] = visitors
        const sides = [await side(workspace, env, one), await side(workspace, env, other)] as const
        yield { workspace, env, same, at: new Date(at).toISOString(), visitors, sides }
      }
    }
  }
}
