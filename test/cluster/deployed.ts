// The cluster that the suites of this folder share: every process has its place, and each suite a workspace of its own.

import { type Client, clientOf, eventually } from '../helpers/client.ts'
import { type Cluster, type ClusterOptions, type Member, startCluster } from '../helpers/cluster.ts'
import type { Keys } from '../helpers/server.ts'
import { makeWorkspace } from '../helpers/tenant.ts'

export interface Deployed {
  readonly cluster: Cluster
  readonly operatorToken: string
  /** The place of one that was stopped or killed for good. */
  forget(member: Member): void
  openWorkspace(name: string): Promise<Workspace>
}

export interface Workspace {
  readonly id: string
  readonly keys: Keys
  /** Two processes that accept, one that does and does not wait long for a decision, and one that reads and changes. */
  readonly first: Client
  readonly second: Client
  readonly hasty: Client
  readonly api: Client
}

export const PARTITIONS = 8
const ROLES = ['ingress', 'ingress,jobs', 'engine', 'engine', 'api']
const HASTY_MS = 1_000

export async function deploy(env: NonNullable<ClusterOptions['env']>): Promise<Deployed> {
  const cluster = await startCluster({ roles: ROLES, partitions: PARTITIONS, env })
  const hasty = await cluster.add('ingress,dispatcher', { env: { FINGERPOST_DECISION_WAIT_MS: String(HASTY_MS) } })
  const [first, second] = cluster.membersOf('ingress') as [Member, Member]
  const [api] = cluster.membersOf('api') as [Member]
  return {
    cluster,
    operatorToken: api.server.operatorToken,
    forget: (member) => void (cluster.members as Member[]).splice(cluster.members.indexOf(member), 1),
    async openWorkspace(name) {
      const { keys, workspace: id } = await makeWorkspace(api.server, name)
      const of = ({ server }: Member): Client => clientOf({ ...server, keys })
      const accepting = { first: of(first), second: of(second), hasty: of(hasty) }
      for (const client of Object.values(accepting)) {
        for (const key of [keys.secret, keys.testSecret]) {
          // Half a body is refused as well, once the key is known.
          await eventually(
            () => client.send('POST', '/v1/identify', { key, raw: '{' }),
            ({ status }) => status !== 401,
          )
        }
      }
      return { id, keys, ...accepting, api: of(api) }
    },
  }
}

/** Partitions each engine says it holds; NaN of one that does not answer, which `tell` is told with the end of its log. */
export async function held({ cluster }: Deployed, tell: (what: string) => void): Promise<number[]> {
  const counts = cluster.membersOf('engine').map(async ({ url, server }) => {
    const text = await fetch(`${url}/metrics`).then(
      (response) => response.text(),
      ({ cause }) => {
        tell(`an engine does not answer: ${cause}\n${server.logs().slice(-4_000)}`)
        return ''
      },
    )
    return Number(/^fingerpost_engine_partitions_held (\d+)/m.exec(text)?.[1] ?? Number.NaN)
  })
  return (await Promise.all(counts)).sort()
}
