// Oneself: name, password, authenticator, and where one is signed in.

import { useState } from 'preact/hooks'
import { useAct } from '../../lib/act.ts'
import { call, session } from '../../lib/api.ts'
import { useLoad } from '../../lib/load.ts'
import type { ListedSession, OffsetPage, Person, SignedIn } from '../../lib/types.ts'
import { CopyButton } from '../../ui/copy.tsx'
import { TextField } from '../../ui/field.tsx'
import { FormEnd } from '../../ui/form-end.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { MomentText } from '../../ui/words.tsx'

export function You() {
  const person = session.value?.person
  if (person === undefined) return null
  return (
    <div class="columns">
      <div class="stack">
        <Name key={person.name} person={person} />
        <Password />
        <Authenticator person={person} />
      </div>
      <Sessions />
    </div>
  )
}

function Name({ person }: { readonly person: Person }) {
  const [name, setName] = useState(person.name)
  const act = useAct()
  const submit = (event: Event) => {
    event.preventDefault()
    void act.run(async () => {
      const answer = await call<{ person: Person }>('/console/api/me', { method: 'PATCH', body: { name: name.trim() } })
      if (session.value) session.value = { ...session.value, person: answer.person }
    }, 'The name is changed.')
  }
  return (
    <Card title={person.email}>
      <form class="form" onSubmit={submit}>
        <TextField label="Name" value={name} onChange={setName} required maxLength={200} autocomplete="name" />
        <FormEnd act={act} action="Save" tone="" isReady={name.trim() !== person.name} />
      </form>
    </Card>
  )
}

function Password() {
  const [current, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  const act = useAct()
  const submit = (event: Event) => {
    event.preventDefault()
    void act.run(async () => {
      session.value = await call<SignedIn>('/console/api/password', { method: 'POST', body: { current, password } })
      setCurrent('')
      setPassword('')
    }, 'The password is changed; all other sessions are over.')
  }
  return (
    <Card title="Password">
      <form class="form" onSubmit={submit}>
        <TextField
          label="The one you have"
          type="password"
          value={current}
          onChange={setCurrent}
          required
          autocomplete="current-password"
        />
        <TextField
          label="A new one"
          type="password"
          value={password}
          onChange={setPassword}
          required
          minLength={12}
          maxLength={256}
          autocomplete="new-password"
        />
        <FormEnd act={act} action="Change" tone="" />
      </form>
    </Card>
  )
}

interface Secret {
  readonly secret: string
  readonly uri: string
}

function Authenticator({ person }: { readonly person: Person }) {
  const [password, setPassword] = useState('')
  const [begun, setBegun] = useState<Secret | null>(null)
  const [code, setCode] = useState('')
  const act = useAct()
  const begin = (event: Event) => {
    event.preventDefault()
    void act.run(async () => {
      setBegun(await call<Secret>('/console/api/totp', { method: 'POST', body: { password } }))
      setPassword('')
    })
  }
  const confirm = (event: Event) => {
    event.preventDefault()
    void act.run(async () => {
      session.value = await call<SignedIn>('/console/api/totp/confirm', { method: 'POST', body: { code } })
      setBegun(null)
      setCode('')
    }, 'From now on a sign-in asks for a code.')
  }
  const remove = (event: Event) => {
    event.preventDefault()
    void act.run(async () => {
      session.value = await call<SignedIn>('/console/api/totp/remove', { method: 'POST', body: { password } })
      setPassword('')
    }, 'The authenticator is removed.')
  }
  const ask = (
    <TextField
      label="Your password"
      type="password"
      value={password}
      onChange={setPassword}
      required
      autocomplete="current-password"
    />
  )
  return (
    <Card title="Authenticator">
      {begun !== null ? (
        <form class="form" onSubmit={confirm}>
          <p>
            Enter this key into your authenticator, or open the link on the phone that has it. Then type the code it
            shows.
          </p>
          <div class="secret row spread">
            <code>{begun.secret}</code>
            <CopyButton text={() => begun.secret} />
          </div>
          <p>
            <a href={begun.uri}>Open in an authenticator</a>
          </p>
          <TextField
            label="Code"
            value={code}
            onChange={setCode}
            required
            inputMode="numeric"
            pattern="[0-9]{6}"
            maxLength={6}
            autocomplete="one-time-code"
          />
          <FormEnd act={act} action="Confirm" />
        </form>
      ) : person.totp ? (
        <form class="form" onSubmit={remove}>
          <p>A sign-in asks for a code.</p>
          {ask}
          <FormEnd act={act} action="Remove" tone="danger" />
        </form>
      ) : (
        <form class="form" onSubmit={begin}>
          <p>With an authenticator app a stolen password is not enough.</p>
          {ask}
          <FormEnd act={act} action="Add" tone="" />
        </form>
      )}
    </Card>
  )
}

function Sessions() {
  const loaded = useLoad<OffsetPage<ListedSession>>('/console/api/sessions')
  const act = useAct()
  const end = (id: string) =>
    act.run(async () => {
      await call(`/console/api/sessions/${id}`, { method: 'DELETE' })
      loaded.reload()
    }, 'That session is over.')
  const endOthers = () =>
    act.run(async () => {
      await call('/console/api/sessions', { method: 'DELETE' })
      loaded.reload()
    }, 'All other sessions are over.')
  return (
    <Card
      title="Where you are signed in"
      actions={
        <button type="button" class="slim" disabled={act.isBusy} onClick={() => void endOthers()}>
          End all others
        </button>
      }
    >
      <Problem error={act.error} />
      <Shown of={loaded}>
        {({ data }) => (
          <Table label="Sessions" head={['Browser', 'Address', 'Seen', '']}>
            {data.map((one) => (
              <tr key={one.id}>
                <th scope="row" class="wide">
                  {one.userAgent}
                </th>
                <td class="once">{one.address}</td>
                <td class="once">
                  <MomentText at={one.lastSeenAt} relative />
                </td>
                <td>
                  {one.current ? (
                    <span class="chip" data-kind="good">
                      this one
                    </span>
                  ) : (
                    <button
                      type="button"
                      class="slim"
                      aria-label={`End the session of ${one.address}`}
                      disabled={act.isBusy}
                      onClick={() => void end(one.id)}
                    >
                      End
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Shown>
    </Card>
  )
}
