// A provider of OpenID Connect from npm as a process of its own: whoever `login_hint` names, else its first account, signs in there without
// a page. Takes issuer, client secret, address to return to and accounts as JSON by its arguments, and prints a line once it listens.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

interface Interaction {
  readonly prompt: { readonly name: string }
  readonly params: { readonly client_id: string; readonly login_hint?: string }
  readonly session?: { readonly accountId: string }
}
interface Grant {
  addOIDCScope(scope: string): void
  save(): Promise<string>
}
/** What is used of it here; the package has no types. */
interface OpenidProvider {
  callback(): (request: IncomingMessage, response: ServerResponse) => void
  interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
  readonly Grant: new (of: { readonly accountId: string | undefined; readonly clientId: string }) => Grant
}
type OpenProvider = new (issuer: string, configuration: object) => OpenidProvider

const [issuer = '', clientSecret = '', returnTo = '', accountsText = '{}'] = process.argv.slice(2)
const accounts = JSON.parse(accountsText) as Readonly<Record<string, object>>
const PACKAGE: string = 'oidc-provider'
const { Provider } = (await import(PACKAGE)) as { readonly Provider: OpenProvider }
const scope = 'openid email profile'

const provider = new Provider(issuer, {
  clients: [
    {
      ...{ client_id: 'console', client_secret: clientSecret, redirect_uris: [returnTo] },
      ...{ response_types: ['code'], grant_types: ['authorization_code'] },
    },
  ],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  cookies: { keys: ['a key for a test'] },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
  pkce: { required: () => true },
  findAccount: (_: unknown, id: string) =>
    accounts[id] && { accountId: id, claims: async () => ({ sub: id, ...accounts[id] }) },
})

async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(request, response)
  if (params.login_hint === 'refuses') {
    return provider.interactionFinished(request, response, { error: 'access_denied' })
  }
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, {
      login: { accountId: params.login_hint ?? Object.keys(accounts)[0] },
    })
  }
  const grant = new provider.Grant({ accountId: session?.accountId, clientId: params.client_id })
  grant.addOIDCScope(scope)
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
}

const serve = provider.callback()
const server = createServer((request, response) => {
  if (request.url?.startsWith('/interaction/') !== true) return serve(request, response)
  interact(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
})
server.listen(Number(new URL(issuer).port), '127.0.0.1', () => process.stdout.write('listening\n'))
