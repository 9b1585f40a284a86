// What is asked of the OpenID provider (OpenID Connect Core 1.0; RFC 6749, 7636): where its sign-in is, and who comes back from there.
// Nothing it says counts before signature, issuer, audience, times and nonce are right.

import {
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type Client,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type CustomFetchOptions,
  calculatePKCECodeChallenge,
  customFetch,
  discoveryRequest,
  getValidatedIdTokenClaims,
  type JWKSCacheInput,
  jwksCache,
  None,
  processAuthorizationCodeResponse,
  processDiscoveryResponse,
  processUserInfoResponse,
  userInfoRequest,
  validateApplicationLevelSignature,
  validateAuthResponse,
} from 'oauth4webapi'
import type { Role } from '../../domain/person.ts'
import type { Clock } from '../../lib/clock.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import { Unavailable } from '../../lib/failures.ts'
import type { ProviderAccount } from '../../records/people.ts'
import { Untrusted } from './untrusted.ts'

export interface OidcSettings {
  readonly issuer: string
  readonly clientId: string
  /** '': the provider knows the client by its address and PKCE alone. */
  readonly clientSecret: string
  readonly label: string
  /** Of e-mails that nobody has to add. */
  readonly domains: readonly string[]
  readonly role: Role
}

/** What a sign-in that is under way is known by, when the browser comes back. */
export interface Trip {
  readonly state: string
  readonly nonce: string
  /** Of PKCE. */
  readonly verifier: string
}

/** As the provider sent the browser back. */
export interface Returned {
  readonly code: string
  readonly state: string
  /** RFC 9207. */
  readonly iss?: string
}

export interface Vouched {
  readonly account: ProviderAccount
  /** null: the provider told none. */
  readonly email: string | null
  readonly isVerified: boolean
  readonly name: string | null
}

export interface Provider {
  /** Where the browser goes. Throws Unavailable. */
  signInAt(trip: Trip, returnTo: string): Promise<string>
  /** Throws Untrusted, or Unavailable when the provider does not answer. */
  whoIs(returned: Returned, trip: Trip, returnTo: string): Promise<Vouched>
}

const SCOPE = 'openid email profile'
const ANSWER_MS_MAX = 10_000
const ANSWER_BYTES_MAX = 1_048_576
const KNOWN_MS = HOUR_MS
const NO_BODY = [204, 205, 304]

export function openProvider(settings: OidcSettings, clock: Pick<Clock, 'now'>): Provider {
  const { issuer, clientId, clientSecret } = settings
  const client: Client = { client_id: clientId }
  const keys: JWKSCacheInput = {}
  let known: { readonly server: AuthorizationServer; readonly at: number } | null = null

  const asking = {
    [customFetch]: ask,
    // config.ts takes http from this machine alone.
    [allowInsecureRequests]: issuer.startsWith('http:'),
  }

  async function discover(): Promise<AuthorizationServer> {
    if (known !== null && clock.now() - known.at < KNOWN_MS) return known.server
    const at = new URL(issuer)
    const response = await discoveryRequest(at, { ...asking, algorithm: 'oidc' })
    const server = await processDiscoveryResponse(at, response)
    known = { server, at: clock.now() }
    return server
  }

  function authentication(server: AuthorizationServer): ClientAuth {
    if (clientSecret === '') return None()
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    return methods.includes('client_secret_basic') ? ClientSecretBasic(clientSecret) : ClientSecretPost(clientSecret)
  }

  return {
    async signInAt({ state, nonce, verifier }, returnTo) {
      const server = await discover().catch(failDiscovery)
      if (server.authorization_endpoint === undefined) throw new Unavailable('the provider has no sign-in page')
      const url = new URL(server.authorization_endpoint)
      const asked = {
        ...{ client_id: clientId, redirect_uri: returnTo, response_type: 'code', scope: SCOPE, state, nonce },
        ...{ code_challenge: await calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
      }
      for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value)
      return url.href
    },

    async whoIs(returned, trip, returnTo) {
      const server = await discover().catch(failDiscovery)
      try {
        const came = new URLSearchParams(Object.entries(returned))
        const params = validateAuthResponse(server, client, came, trip.state)
        const by = authentication(server)
        const { verifier, nonce: expectedNonce } = trip
        const answer = await authorizationCodeGrantRequest(
          ...([server, client, by, params, returnTo, verifier, asking] as const),
        )
        const expected = { expectedNonce, requireIdToken: true }
        const tokens = await processAuthorizationCodeResponse(server, client, answer, expected)
        await validateApplicationLevelSignature(server, answer, { ...asking, [jwksCache]: keys })
        const claims = getValidatedIdTokenClaims(tokens)
        if (claims === undefined) throw new Untrusted('there is no ID token')
        const account = { issuer: claims.iss, subject: claims.sub }
        if (claims.email !== undefined || server.userinfo_endpoint === undefined) return vouched(account, claims)
        // Many providers tell e-mail and name only there.
        const told = await userInfoRequest(server, client, tokens.access_token, asking)
        return vouched(account, await processUserInfoResponse(server, client, claims.sub, told))
      } catch (error) {
        if (error instanceof Unavailable || error instanceof Untrusted) throw error
        throw new Untrusted(reasonOf(error), { cause: error })
      }
    },
  }
}

function vouched(account: ProviderAccount, claims: Readonly<Record<string, unknown>>): Vouched {
  const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null)
  return { account, email: text(claims.email), isVerified: claims.email_verified === true, name: text(claims.name) }
}

function failDiscovery(error: unknown): never {
  if (error instanceof Unavailable) throw error
  throw new Unavailable(`the provider does not say what it is: ${reasonOf(error)}`, { cause: error })
}

/** Codes of oauth4webapi and of RFC 6749 tell what was wrong without what was sent. */
function reasonOf(error: unknown): string {
  const { code, error: refusal, message } = error as { code?: string; error?: string; message?: string }
  return [code, refusal, message].filter((part) => typeof part === 'string' && part !== '').join(': ')
}

/** With an end to waiting and to what is read; a server that fails counts as one that does not answer. */
async function ask(
  url: string,
  { body, ...init }: CustomFetchOptions<'GET' | 'POST', URLSearchParams | undefined>,
): Promise<Response> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MS_MAX)
    const response = await fetch(url, { ...init, ...(body === undefined ? {} : { body }), signal })
    const { status, headers } = response
    if (status >= 500) throw new Error(`${new URL(url).host} answers ${status}`)
    const bytes = await readBounded(response)
    return new Response(NO_BODY.includes(status) ? null : bytes, { status, headers })
  } catch (cause) {
    throw new Unavailable('the provider does not answer', { cause })
  }
}

async function readBounded(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (bytes > ANSWER_BYTES_MAX) throw new Error(`an answer is larger than ${ANSWER_BYTES_MAX} bytes`)
    parts.push(part)
  }
  return new Uint8Array(Buffer.concat(parts))
}
