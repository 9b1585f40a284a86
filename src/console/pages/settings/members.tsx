// Who may use the console, and as what.

import { useState } from 'preact/hooks'
import type { Role } from '../../../domain/person.ts'
import { useAct } from '../../lib/act.ts'
import { call, session } from '../../lib/api.ts'
import { useLoad } from '../../lib/load.ts'
import type { Member, OffsetPage } from '../../lib/types.ts'
import { Secret } from '../../ui/copy.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { FormEnd } from '../../ui/form-end.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { MomentText, StatusChip } from '../../ui/words.tsx'

const ROLES: readonly (readonly [Role, string])[] = [
  ['viewer', 'viewer: reads'],
  ['analyst', 'analyst: labels, merges, lists'],
  ['editor', 'editor: rules, webhooks, alerts'],
  ['admin', 'admin: keys, people, erasures'],
]

interface Invited {
  readonly member: Member
  readonly link: string
}

export function Members() {
  const loaded = useLoad<OffsetPage<Member>>('/console/api/members')
  const [invited, setInvited] = useState<Invited | null>(null)
  const [removing, setRemoving] = useState<Member | null>(null)
  const act = useAct()
  const show = (found: Invited) => {
    setInvited(found)
    loaded.reload()
  }
  const change = (member: Member, role: Role) =>
    act.run(async () => {
      await call(`/console/api/members/${member.id}`, { method: 'PATCH', body: { role } })
      loaded.reload()
    }, `${member.name} is ${role} now.`)
  const link = (member: Member) =>
    act.run(async () => show(await call<Invited>(`/console/api/members/${member.id}/link`, { method: 'POST' })))
  return (
    <>
      {invited !== null && <Secret name={`The link for ${invited.member.email}`} value={invited.link} />}
      <Problem error={act.error} />
      <div class="columns">
        <Card title="Members">
          <Shown of={loaded}>
            {({ data }) => (
              <Table label="Members" head={['Name', 'Role', 'Status', 'Last seen', '']}>
                {data.map((member) => (
                  <tr key={member.id}>
                    <th scope="row" class="wide">
                      {member.name}
                      <br />
                      <span class="quiet small">
                        {member.email}
                        {member.totp ? ' · authenticator' : ''}
                      </span>
                    </th>
                    <td>
                      <select
                        aria-label={`Role of ${member.email}`}
                        value={member.role}
                        onChange={(event) => void change(member, event.currentTarget.value as Role)}
                      >
                        {ROLES.map(([role]) => (
                          <option key={role} value={role}>
                            {role}
                          </option>
                        ))}
                      </select>
                    </td>
                    <td>
                      <StatusChip of={member.status} />
                    </td>
                    <td class="once">
                      <MomentText at={member.lastSeenAt} relative />
                    </td>
                    <td>
                      <span class="row">
                        <button
                          type="button"
                          class="slim"
                          aria-label={`New link for ${member.email}`}
                          onClick={() => void link(member)}
                        >
                          New link
                        </button>
                        {member.id !== session.value?.person.id && (
                          <button
                            type="button"
                            class="slim"
                            aria-label={`Remove ${member.email}`}
                            onClick={() => setRemoving(member)}
                          >
                            Remove
                          </button>
                        )}
                      </span>
                    </td>
                  </tr>
                ))}
              </Table>
            )}
          </Shown>
        </Card>
        <Invite invited={show} />
      </div>
      {removing !== null && (
        <Confirm
          title="Remove the member"
          action="Remove"
          onClose={() => setRemoving(null)}
          onConfirm={async () => {
            await call(`/console/api/members/${removing.id}`, { method: 'DELETE' })
            loaded.reload()
          }}
        >
          <p>{removing.email} is signed out everywhere and cannot come in again.</p>
        </Confirm>
      )}
    </>
  )
}

function Invite({ invited }: { readonly invited: (found: Invited) => void }) {
  const [email, setEmail] = useState('')
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const act = useAct()
  const submit = (event: Event) => {
    event.preventDefault()
    void act.run(async () => {
      const body = { email: email.trim(), role, ...(name.trim() === '' ? {} : { name: name.trim() }) }
      invited(await call<Invited>('/console/api/members', { method: 'POST', body }))
      setEmail('')
      setName('')
    })
  }
  return (
    <Card title="Invite">
      <form class="form" onSubmit={submit}>
        <TextField label="E-mail" type="email" value={email} onChange={setEmail} required maxLength={320} />
        <TextField label="Name" value={name} onChange={setName} maxLength={200} />
        <SelectField label="Role" value={role} onChange={setRole} options={ROLES} />
        <FormEnd act={act} action="Invite" />
        <p class="quiet small">
          No mail is sent: hand the link over yourself. It is good for seven days and works once.
        </p>
      </form>
    </Card>
  )
}
