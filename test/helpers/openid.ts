// Providers of OpenID Connect for tests of the console: a real one in a process of its own, and one whose tokens say whatever a test wants.

import { spawn } from 'node:child_process'
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { OidcSettings } from '../../src/api/console/provider.ts'

export const CLIENT_SECRET = 'a client secret of the test'

/** Settings of a console that knows this issuer. */
export const settingsOf = (issuer: string, more: Partial<OidcSettings> = {}): OidcSettings => ({
  ...{ issuer, clientId: 'console', clientSecret: CLIENT_SECRET, label: 'Example' },
  ...{ domains: [], role: 'viewer', ...more },
})

const PROCESS = fileURLToPath(new URL('openid-process.js', import.meta.url))

/** `accounts`: the claims of each by its `sub`. Resolves once it listens. */
export async function startProvider(
  t: Test,
  issuer: string,
  returnTo: string,
  accounts: Readonly<Record<string, object>>,
): Promise<void> {
  const child = spawn(process.execPath, [PROCESS, issuer, CLIENT_SECRET, returnTo, JSON.stringify(accounts)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.teardown(async () => {
    child.kill()
    await once(child, 'exit')
  })
  await once(child.stdout, 'data')
}

const STEPS_MAX = 20

/** A browser that goes where it is sent until it is back; keeps the provider's cookies. Gives what it comes back with. */
export async function signInThere(url: string, returnTo: string, login: string): Promise<Record<string, string>> {
  const cookies = new Map<string, string>()
  const at = new URL(url)
  at.searchParams.set('login_hint', login)
  let next = at.href
  for (let step = 0; step < STEPS_MAX; step++) {
    if (next.startsWith(returnTo)) return Object.fromEntries(new URL(next).searchParams)
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(next, { redirect: 'manual', headers: { Cookie: cookie } })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`${next} answers ${response.status}: ${await response.text()}`)
    next = new URL(location, next).href
  }
  throw new Error('it never came back')
}

export type Claims = Record<string, unknown>

/** What its next token says; the rest is as it should be. */
export interface Twist {
  readonly claims?: Claims
  readonly header?: Record<string, unknown>
  readonly signedBy?: 'own' | 'foreign' | 'client secret' | 'nobody'
  /** Changes the token after it was signed. */
  readonly alter?: (token: string) => string
  readonly status?: number
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const newKeys = () => generateKeyPairSync('rsa', { modulusLength: 2_048 })

/** Answers any code with a token for `nonce`, and says of itself that it would sign with anything. */
export async function openLyingProvider(t: Test) {
  const own = newKeys()
  const foreign = newKeys()
  const lying = { issuer: '', nonce: '', twist: {} as Twist, asked: 0 }

  function tokenOf({ claims = {}, header = {}, signedBy = 'own', alter = (token) => token }: Twist): string {
    const now = Math.floor(Date.now() / 1_000)
    const said = {
      ...{ iss: lying.issuer, aud: 'console', sub: 'sub-vic', iat: now, exp: now + 300, nonce: lying.nonce },
      ...{ email: 'vic@shop.example', email_verified: true, name: 'Vic', ...claims },
    }
    const unsigned = `${base64({ alg: 'RS256', kid: 'one', typ: 'JWT', ...header })}.${base64(said)}`
    const rsa = (key: KeyObject) => sign('sha256', Buffer.from(unsigned), key).toString('base64url')
    const signatures = {
      own: () => rsa(own.privateKey),
      foreign: () => rsa(foreign.privateKey),
      'client secret': () => createHmac('sha256', CLIENT_SECRET).update(unsigned).digest('base64url'),
      nobody: () => '',
    }
    return alter(`${unsigned}.${signatures[signedBy]()}`)
  }

  const server = createServer((request, response) => {
    const answer = (body: object, status = 200) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    const { issuer } = lying
    if (request.url === '/.well-known/openid-configuration') {
      const places = {
        ...{ authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/jwks` },
        id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
      }
      return answer({ issuer, response_types_supported: ['code'], subject_types_supported: ['public'], ...places })
    }
    if (request.url === '/jwks') {
      const key = own.publicKey.export({ format: 'jwk' })
      return answer({ keys: [{ ...key, kid: 'one', alg: 'RS256', use: 'sig' }] })
    }
    lying.asked++
    const { twist } = lying
    return answer({ access_token: 'a', token_type: 'Bearer', id_token: tokenOf(twist) }, twist.status)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  lying.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return lying
}
