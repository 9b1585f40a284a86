// A workspace of its own on the server that a whole test run shares: what tests use that neither restart a server nor change
// its settings. The runner starts that server and names it in TEST_SERVER; a file that is run by itself starts its own.

import { clientOf, type Remote } from './client.ts'
import { authorityIn, type Leaf } from './receiver.ts'
import { cleanUp, type Keys, type Launched, SHARED_ENV, startServer, temporaryFolder } from './server.ts'

export interface Tenant extends Remote {
  readonly workspace: string
  /** For receivers of webhooks on localhost and 127.0.0.1. */
  readonly receiverTls: Leaf
}

/** The shared server as the runner names it. */
interface Named extends Pick<Launched, 'url' | 'port' | 'operatorToken' | 'pid'> {
  readonly receiverTls: Leaf
}

export interface Shared extends Named {
  /** For TEST_SERVER. */
  readonly named: string
  /** Ends it; resolves with what was wrong with that, or null. */
  stop(): Promise<string | null>
}

/** Starts the server that a run shares; it trusts an authority of its own, under which its receivers speak TLS. */
export async function startShared(nodeArgs: readonly string[] = []): Promise<Shared> {
  const authority = authorityIn(temporaryFolder())
  const env = { ...SHARED_ENV, FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile }
  const server = await startServer({ env, nodeArgs })
  const { url, port, operatorToken, pid } = server
  const named: Named = { url, port, operatorToken, pid, receiverTls: authority.leaf('DNS:localhost,IP:127.0.0.1') }
  const kill = () => server.signal('SIGKILL')
  process.once('exit', kill)
  return {
    ...named,
    named: JSON.stringify(named),
    async stop() {
      const code = await server.stop()
      process.off('exit', kill)
      await cleanUp()
      return code === 0 ? null : `the shared server ended with ${code}:\n${server.logs().slice(-2_000)}`
    },
  }
}

let shared: Promise<Named> | null = null

/** The server of this run. `cleanUp` ends one that was started here. */
function sharedServer(): Promise<Named> {
  const { TEST_SERVER } = process.env
  shared ??= TEST_SERVER === undefined ? startShared() : Promise.resolve(JSON.parse(TEST_SERVER))
  return shared
}

/** Makes a workspace on plan `enterprise` with one key of each kind, the way an operator does. */
export async function makeWorkspace(
  on: Omit<Remote, 'keys'>,
  name: string,
): Promise<Remote & Pick<Tenant, 'workspace'>> {
  const { url, port, operatorToken, pid } = on
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
  return { url, port, operatorToken, pid, keys, workspace }
}

/** A workspace of its own on the server of this run. */
export async function openTenant(name = 'a test'): Promise<{ readonly server: Tenant } & ReturnType<typeof clientOf>> {
  const shared = await sharedServer()
  const server: Tenant = { ...(await makeWorkspace(shared, name)), receiverTls: shared.receiverTls }
  return { server, ...clientOf(server) }
}

/** For t.teardown: an alert that is left would be compared with its figures every second until the run ends. */
export async function removeAlerts({ server, send }: Pick<Awaited<ReturnType<typeof openTenant>>, 'server' | 'send'>) {
  for (const key of [server.keys.secret, server.keys.testSecret]) {
    const { body } = await send('GET', '/v1/alerts?limit=100', { key })
    for (const { id } of body.data) await send('DELETE', `/v1/alerts/${id}`, { key })
  }
}
