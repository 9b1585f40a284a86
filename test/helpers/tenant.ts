// A workspace of its own on the server that a whole test run shares: what tests use that neither restart a server nor change
// its settings. The runner starts that server and names it in TEST_SERVER; a file that is run by itself starts its own.

import { clientOf, type Remote } from './client.ts'
import { type Keys, type Launched, SHARED_ENV, startServer } from './server.ts'

export interface Tenant extends Remote {
  readonly workspace: string
}

/** The shared server as the runner names it. */
export type Shared = Pick<Launched, 'url' | 'port' | 'operatorToken' | 'pid'>

let shared: Promise<Shared> | null = null

/** The server of this run. `cleanUp` ends one that was started here. */
function sharedServer(): Promise<Shared> {
  const { TEST_SERVER } = process.env
  shared ??= TEST_SERVER === undefined ? startServer({ env: SHARED_ENV }) : Promise.resolve(JSON.parse(TEST_SERVER))
  return shared
}

/** Makes a workspace on plan `enterprise` with one key of each kind, the way an operator does. */
export async function openTenant(name = 'a test'): Promise<{ readonly server: Tenant } & ReturnType<typeof clientOf>> {
  const { url, port, operatorToken, pid } = await sharedServer()
  const none: Keys = { public: '', secret: '', testPublic: '', testSecret: '' }
  const operator = clientOf({ url, port, operatorToken, pid, keys: none })
  async function make(path: string, body: object): Promise<{ readonly id: string; readonly key: string }> {
    const { status, body: made, text } = await operator.admin('POST', path, body)
    if (status !== 201) throw new Error(`${status} ${text}`)
    return made
  }
  const { id: workspace } = await make('/workspaces', { name })
  const keyOf = async (kind: 'public' | 'secret', environment: 'live' | 'test') =>
    (await make(`/workspaces/${workspace}/keys`, { kind, environment })).key
  const keys: Keys = {
    public: await keyOf('public', 'live'),
    secret: await keyOf('secret', 'live'),
    testPublic: await keyOf('public', 'test'),
    testSecret: await keyOf('secret', 'test'),
  }
  const server: Tenant = { url, port, operatorToken, pid, keys, workspace }
  return { server, ...clientOf(server) }
}
