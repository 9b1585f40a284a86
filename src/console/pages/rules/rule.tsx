// One rule: written anew, or as it is with what it does, did, and was.

import { useMemo, useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { useAct } from '../../lib/act.ts'
import { call, can, request, useLongAct } from '../../lib/api.ts'
import { wholeText } from '../../lib/format.ts'
import type { PageProps } from '../../lib/later.tsx'
import { type Loaded, useAll, useLoad } from '../../lib/load.ts'
import { notify } from '../../lib/notices.ts'
import { usePlace } from '../../lib/place.ts'
import type { Env, Event, ListedList, OffsetPage, Rule, RuleField, WrittenRule } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { DeleteButton } from '../../ui/delete-button.tsx'
import { Page, Tabs } from '../../ui/page.tsx'
import { Problem, Shown } from '../../ui/state.tsx'
import { FactList, MomentText, StatusChip } from '../../ui/words.tsx'
import type { Known } from './conditions.tsx'
import { draftOf, EMPTY_DRAFT } from './draft.ts'
import { Editor, type Saving } from './editor.tsx'
import { ruleFrom } from './from-event.ts'
import { History } from './history.tsx'
import { Monitor } from './monitor.tsx'
import { TEMPLATES } from './templates.ts'
import { TryOn } from './try-on.tsx'
import { UNSAVED } from './words.ts'

function useKnown(): Loaded<Known> {
  const fields = useLoad<OffsetPage<RuleField>>('/v1/rules/fields')
  const lists = useAll<ListedList>('/v1/lists')
  const data = useMemo(
    () => (fields.data && lists.data ? { fields: fields.data.data, lists: lists.data.data } : undefined),
    [fields.data, lists.data],
  )
  return {
    data,
    error: fields.error ?? lists.error,
    isLoading: fields.isLoading || lists.isLoading,
    reload: () => {
      fields.reload()
      lists.reload()
    },
  }
}

/** How soon everybody decides by it. */
function sayReached(
  { propagated, propagationMs }: Pick<WrittenRule, 'propagated' | 'propagationMs'>,
  what: string,
): void {
  notify(
    propagated ? `${what}: everywhere after ${propagationMs} ms.` : `${what}; not every process has confirmed it yet.`,
  )
}

export function NewRule() {
  const [{ event: requestId, template }] = usePlace()
  const known = useKnown()
  const event = useLoad<Event>(requestId === undefined ? null : `/v1/events/${encodeURIComponent(requestId)}`)
  const [, go] = useLocation()
  const ways = (['live', 'monitor', 'draft'] as const).map((status) => ({
    label: { live: 'Go live', monitor: 'Save and monitor', draft: 'Save as draft' }[status],
    save: async (rule: Saving) => {
      const made = await call<WrittenRule>('/v1/rules', { method: 'POST', body: { ...rule, status } })
      sayReached(made, status === 'live' ? 'The rule decides' : 'The rule is saved')
      go(`/rules/${made.id}`)
    },
  }))
  const isReady = requestId === undefined || event.data !== undefined || event.error !== null
  return (
    <Page title="New rule" about="What it would have done to the events of the last week stands beside it as you type.">
      <Problem error={event.error} />
      <Shown of={known}>
        {(found) =>
          isReady && (
            <Editor
              from={
                event.data !== undefined
                  ? draftOf(ruleFrom(event.data))
                  : template !== undefined && TEMPLATES[Number(template)] !== undefined
                    ? draftOf((TEMPLATES[Number(template)] as (typeof TEMPLATES)[number]).rule)
                    : EMPTY_DRAFT()
              }
              known={found}
              ways={ways}
            />
          )
        }
      </Shown>
    </Page>
  )
}

const TABS = [
  ['rule', 'Rule'],
  ['try', 'Try on an event'],
  ['monitor', 'Monitor'],
  ['history', 'History'],
] as const
type Tab = (typeof TABS)[number][0]

/** What the editor edits of a rule: as long as it is the same, so is what somebody has typed. */
const editedOf = ({ name, conditions, action, sideEffects, priority }: Rule): string =>
  JSON.stringify([name, conditions, action, sideEffects, priority])

export function RulePage({ id }: PageProps) {
  const path = `/v1/rules/${encodeURIComponent(id)}`
  const loaded = useLoad<Rule>(path)
  const known = useKnown()
  return (
    <Page title={loaded.data?.name ?? 'Rule'} about={<code>{id}</code>} actions={<CopyCurl path={path} />}>
      <Shown of={loaded}>
        {(rule) => <Shown of={known}>{(found) => <Whole rule={rule} known={found} reload={loaded.reload} />}</Shown>}
      </Shown>
    </Page>
  )
}

function Whole({ rule, known, reload }: { readonly rule: Rule; readonly known: Known; readonly reload: () => void }) {
  const [asked, ask] = usePlace()
  const tab = (TABS.find(([one]) => one === asked.tab)?.[0] ?? 'rule') as Tab
  const [isEdited, setIsEdited] = useState(false)
  const startLong = useLongAct()
  async function save({ sideEffects, ...saving }: Saving, environment: Env): Promise<void> {
    const etag = await readFreshTag(rule, environment)
    // Addresses of Slack are shown masked, and are taken only whole: what was not changed is not sent.
    const isChanged = JSON.stringify(sideEffects) !== JSON.stringify(draftOf(rule).sideEffects)
    const body = isChanged ? { ...saving, sideEffects } : saving
    const path = `/v1/rules/${rule.id}`
    const answer = await request(path, { method: 'PUT', body, environment }, { 'If-Match': etag })
    sayReached((await answer.json()) as WrittenRule, 'Saved')
    reload()
  }
  const ways = [
    { label: 'Save', save: (saving: Saving) => startLong(`Saving ${rule.name}`, (env) => save(saving, env)) },
  ]
  return (
    <>
      <section class="card">
        <FactList
          of={[
            ['Status', <StatusChip key="s" of={rule.status} />],
            ['Matches', wholeText(rule.stats.matchCount)],
            ['Last match', <MomentText key="m" at={rule.stats.lastMatchAt} relative />],
            ['Would have matched in monitor', wholeText(rule.stats.monitorMatchCount)],
            ['Changed', <MomentText key="c" at={rule.updatedAt} />],
          ]}
        />
        {can('rules:write') && <Switch rule={rule} reload={reload} isEdited={isEdited} />}
      </section>
      <Tabs
        label="About the rule"
        chosen={tab}
        choose={(next) => ask({ tab: next === 'rule' ? '' : next })}
        tabs={TABS}
      />
      <div hidden={tab !== 'rule'}>
        <Editor key={editedOf(rule)} from={draftOf(rule)} known={known} ways={ways} onEdited={setIsEdited} />
      </div>
      {tab === 'try' && <TryOn rule={rule} />}
      {tab === 'monitor' && <Monitor rule={rule} />}
      {tab === 'history' && <History rule={rule} reload={reload} isEdited={isEdited} />}
    </>
  )
}

/** The tag of the rule as it is, as long as that is what the page shows. Throws when somebody changed it meanwhile. */
async function readFreshTag({ id, updatedAt }: Rule, environment: Env): Promise<string> {
  const answer = await request(`/v1/rules/${id}`, { environment })
  const now = (await answer.json()) as Rule
  if (now.updatedAt !== updatedAt) {
    throw new Error(
      'Somebody has changed the rule since you opened it. Load the page again and make your change there.',
    )
  }
  return answer.headers.get('etag') ?? '*'
}

const STATUSES = [
  ['live', 'Go live'],
  ['monitor', 'Monitor'],
  ['paused', 'Pause'],
  ['draft', 'Back to draft'],
] as const

interface SwitchProps {
  readonly rule: Rule
  readonly reload: () => void
  /** Whether the editor has changes, which a status would not apply to. */
  readonly isEdited: boolean
}

function Switch({ rule, reload, isEdited }: SwitchProps) {
  const act = useAct()
  const set = (status: Rule['status']) =>
    act.run(async () => {
      const answer = await call<WrittenRule>(`/v1/rules/${rule.id}`, { method: 'PUT', body: { status } })
      sayReached(answer, `The rule is ${status}`)
      reload()
    })
  return (
    <div class="row">
      {STATUSES.filter(([status]) => status !== rule.status).map(([status, label]) => (
        <button
          key={status}
          type="button"
          class={status === 'live' ? 'primary' : ''}
          disabled={act.isBusy || isEdited}
          onClick={() => void set(status)}
        >
          {label}
        </button>
      ))}
      <DeleteButton title="Delete the rule" path={`/v1/rules/${rule.id}`} to="/rules">
        <p>“{rule.name}” decides nothing from then on. Its versions stay readable; the rule does not come back.</p>
      </DeleteButton>
      {isEdited && <span class="quiet small">{UNSAVED}</span>}
      <Problem error={act.error} />
    </div>
  )
}
