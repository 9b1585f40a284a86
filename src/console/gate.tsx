// The ways in: setting the console up, joining by a link, a new password by a link, signing in, and coming back from a provider.

import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { Mark } from './frame.tsx'
import { FromProvider, ToProvider } from './gate-provider.tsx'
import { useAct } from './lib/act.ts'
import { call, RefusedError, session } from './lib/api.ts'
import { useLoad } from './lib/load.ts'
import type { SignedIn } from './lib/types.ts'
import { TextField } from './ui/field.tsx'
import { Problem } from './ui/state.tsx'

const PASSWORD_CHARS_MIN = 12
const PASSWORD_CHARS_MAX = 256

/** Ways in that hold whoever is signed in. */
export const GATE_WAYS = ['/setup', '/join', '/reset', '/oidc']

/** The fragment is in no log; it leaves the address as soon as it was read. */
function takeToken(): string {
  const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? ''
  if (token !== '') history.replaceState(history.state, '', location.pathname)
  return token
}

export function Gate({ path }: { readonly path: string }) {
  const [token] = useState(takeToken)
  return (
    <main class="gate">
      <p class="brand">
        <Mark />
        Fingerpost
      </p>
      <section class="card">
        {path === '/setup' && <SetUp token={token} />}
        {path === '/join' && <Join token={token} isNew />}
        {path === '/reset' && <Join token={token} isNew={false} />}
        {path === '/oidc' && <FromProvider />}
        {!GATE_WAYS.includes(path) && <SignIn />}
      </section>
    </main>
  )
}

function useEnter() {
  const act = useAct()
  const [, go] = useLocation()
  return {
    ...act,
    enter: (path: string, body: unknown, to?: string) =>
      act.run(async () => {
        session.value = await call<SignedIn>(path, { method: 'POST', body })
        if (to !== undefined) go(to, { replace: true })
      }),
  }
}

const passwordHint = `At least ${PASSWORD_CHARS_MIN} characters; a sentence is easier to keep in mind than signs.`

function NewPassword({ value, onChange }: { readonly value: string; readonly onChange: (value: string) => void }) {
  return (
    <TextField
      label="Password"
      type="password"
      value={value}
      onChange={onChange}
      required
      minLength={PASSWORD_CHARS_MIN}
      maxLength={PASSWORD_CHARS_MAX}
      autocomplete="new-password"
      hint={passwordHint}
    />
  )
}

function SetUp({ token }: { readonly token: string }) {
  const { enter, isBusy, error } = useEnter()
  const [email, setEmail] = useState('')
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  if (token === '')
    return (
      <NoToken
        what="Set up the console"
        how="The server prints it at every start until it is used, and fingerpost console link prints it again."
      />
    )
  const submit = (event: Event) => {
    event.preventDefault()
    void enter('/console/api/setup', { token, email, name, password }, '/')
  }
  return (
    <form class="form" onSubmit={submit}>
      <div>
        <h1>Set up the console</h1>
        <p class="quiet">You become its first admin. Nothing leaves this machine.</p>
      </div>
      <TextField
        label="E-mail"
        type="email"
        value={email}
        onChange={setEmail}
        required
        maxLength={320}
        autocomplete="username"
      />
      <TextField label="Name" value={name} onChange={setName} required maxLength={200} autocomplete="name" />
      <NewPassword value={password} onChange={setPassword} />
      <Problem error={error} />
      <button type="submit" class="primary" disabled={isBusy}>
        Create the admin
      </button>
    </form>
  )
}

function NoToken({ what, how }: { readonly what: string; readonly how: string }) {
  return (
    <div class="form">
      <h1>{what}</h1>
      <p>This page needs the whole link, with all that stands behind the #. {how}</p>
      <a href="/console/">To the sign-in</a>
    </div>
  )
}

function Join({ token, isNew }: { readonly token: string; readonly isNew: boolean }) {
  const { enter, isBusy, error } = useEnter()
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const title = isNew ? 'Join the console' : 'Choose a new password'
  if (token === '') return <NoToken what={title} how="Ask whoever sent it for a new one." />
  const submit = (event: Event) => {
    event.preventDefault()
    void enter('/console/api/join', { token, password, ...(name === '' ? {} : { name }) }, '/')
  }
  return (
    <form class="form" onSubmit={submit}>
      <h1>{title}</h1>
      {isNew && <TextField label="Name" value={name} onChange={setName} maxLength={200} autocomplete="name" />}
      <NewPassword value={password} onChange={setPassword} />
      <Problem error={error} />
      <button type="submit" class="primary" disabled={isBusy}>
        {isNew ? 'Join' : 'Save and sign in'}
      </button>
    </form>
  )
}

interface State {
  readonly needsSetup: boolean
  readonly oidc: { readonly label: string } | null
}

function SignIn() {
  const { enter, isBusy, error } = useEnter()
  const state = useLoad<State>('/console/api/state')
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const needsCode = code !== '' || (error instanceof RefusedError && error.code === 'code_required')
  if (state.data?.needsSetup === true) {
    return (
      <div class="form">
        <h1>Not set up yet</h1>
        <p>
          The server prints a link that sets the console up at every start until it is used. To have it printed again,
          run <code>fingerpost console link</code> on the server.
        </p>
      </div>
    )
  }
  const submit = (event: Event) => {
    event.preventDefault()
    void enter('/console/api/sign-in', { email, password, ...(code === '' ? {} : { code }) })
  }
  return (
    <form class="form" onSubmit={submit}>
      <h1>Sign in</h1>
      <TextField
        label="E-mail"
        type="email"
        value={email}
        onChange={setEmail}
        required
        maxLength={320}
        autocomplete="username"
      />
      <TextField
        label="Password"
        type="password"
        value={password}
        onChange={setPassword}
        required
        maxLength={PASSWORD_CHARS_MAX}
        autocomplete="current-password"
      />
      {needsCode && (
        <TextField
          label="Code of your authenticator"
          value={code}
          onChange={setCode}
          inputMode="numeric"
          pattern="[0-9]{6}"
          maxLength={6}
          required
          autocomplete="one-time-code"
        />
      )}
      {!(error instanceof RefusedError && error.code === 'code_required') && <Problem error={error} />}
      <button type="submit" class="primary" disabled={isBusy}>
        Sign in
      </button>
      {state.data?.oidc != null && <ToProvider label={state.data.oidc.label} />}
      <p class="quiet small">
        Lost your password? Whoever runs the server prints a new link with <code>fingerpost console reset</code>.
      </p>
    </form>
  )
}
