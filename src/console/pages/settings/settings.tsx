// Settings: the site's snippet, keys, people, oneself, and what was changed by whom.

import { session } from '../../lib/api.ts'
import { usePlace } from '../../lib/place.ts'
import { Page, Tabs } from '../../ui/page.tsx'
import { Audit } from './audit.tsx'
import { Keys } from './keys.tsx'
import { Members } from './members.tsx'
import { Site } from './site.tsx'
import { You } from './you.tsx'

const TABS = [
  ['site', 'Site'],
  ['keys', 'Keys'],
  ['members', 'Members'],
  ['you', 'You'],
  ['audit', 'Audit log'],
] as const
type Tab = (typeof TABS)[number][0]
const FOR_ADMINS: readonly Tab[] = ['keys', 'members']

export function Settings() {
  const [asked, ask] = usePlace()
  const isAdmin = session.value?.person.role === 'admin'
  const tabs = TABS.filter(([tab]) => isAdmin || !FOR_ADMINS.includes(tab))
  const tab = tabs.find(([one]) => one === asked.tab)?.[0] ?? 'site'
  return (
    <Page title="Settings" about={`${session.value?.workspace.name}, plan ${session.value?.workspace.plan}`}>
      <Tabs label="Settings" chosen={tab} choose={(next) => ask({ tab: next === 'site' ? '' : next })} tabs={tabs} />
      {tab === 'site' && <Site />}
      {tab === 'keys' && <Keys />}
      {tab === 'members' && <Members />}
      {tab === 'you' && <You />}
      {tab === 'audit' && <Audit />}
    </Page>
  )
}
