// Signing in with the provider that the server names: the way there, and what the browser comes back with.

import { useEffect, useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { useAct } from './lib/act.ts'
import { call, RefusedError, session } from './lib/api.ts'
import type { SignedIn } from './lib/types.ts'
import { Problem } from './ui/state.tsx'

export function ToProvider({ label }: { readonly label: string }) {
  const { run, isBusy, error } = useAct()
  const leave = () =>
    run(async () => {
      const { url } = await call<{ readonly url: string }>('/console/api/oidc', { method: 'POST' })
      location.assign(url)
    })
  return (
    <>
      <button type="button" disabled={isBusy} onClick={() => void leave()}>
        Continue with {label}
      </button>
      <Problem error={error} />
    </>
  )
}

interface Returned {
  readonly code: string
  readonly state: string
  readonly iss?: string
  readonly error: string
}

/** The code leaves the address as soon as it was read; it is worth nothing a second time. */
function takeReturned(): Returned {
  const given = new URLSearchParams(location.search)
  const of = (name: string) => given.get(name) ?? ''
  if (location.search !== '') history.replaceState(history.state, '', location.pathname)
  const iss = of('iss')
  return { code: of('code'), state: of('state'), error: of('error'), ...(iss === '' ? {} : { iss }) }
}

export function FromProvider() {
  const [{ error: refused, ...returned }] = useState(takeReturned)
  const { run, error } = useAct()
  const [, go] = useLocation()
  const isWhole = returned.code !== '' && returned.state !== ''
  useEffect(() => {
    if (!isWhole) return
    void run(async () => {
      session.value = await call<SignedIn>('/console/api/oidc/return', { method: 'POST', body: returned })
      go('/', { replace: true })
    })
  }, [])
  if (isWhole && error === null) return <p role="status">Signing in …</p>
  const said =
    refused === 'access_denied' ? 'The provider was told not to sign you in.' : 'The provider did not sign you in.'
  return (
    <div class="form">
      <h1>Not signed in</h1>
      <Problem error={error ?? new RefusedError(0, { message: said })} />
      <a href="/console/sign-in">To the sign-in</a>
    </div>
  )
}
