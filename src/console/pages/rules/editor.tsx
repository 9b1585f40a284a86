// Writing a rule: what it asks on one side, what it would have done on the other.

import { useEffect, useMemo, useState } from 'preact/hooks'
import type { ChallengeType, Verdict } from '../../../domain/event.ts'
import { useAct } from '../../lib/act.ts'
import { can } from '../../lib/api.ts'
import { useLoad } from '../../lib/load.ts'
import type { CursorPage, Event } from '../../lib/types.ts'
import { AreaField, SelectField, TextField } from '../../ui/field.tsx'
import { Card, Tabs } from '../../ui/page.tsx'
import { Problem } from '../../ui/state.tsx'
import { BacktestPanel } from './backtest.tsx'
import { ConditionGroupEditor, type Known } from './conditions.tsx'
import { actionOf, conditionsOf, type Draft, draftOf, isWhole, type RuleText } from './draft.ts'
import { Effects } from './effects.tsx'

const VERDICTS: readonly (readonly [Verdict, string])[] = [
  ['allow', 'allow'],
  ['challenge', 'challenge'],
  ['block', 'block'],
]
const CHALLENGES: readonly (readonly [ChallengeType | '', string])[] = [
  ['', 'what fits the visitor'],
  ['captcha', 'a captcha'],
  ['otp', 'a one-time password'],
  ['email', 'an e-mail'],
  ['webauthn', 'a passkey'],
  ['device_check', 'a check of the device'],
  ['custom', 'something of your own'],
]

export interface Saving {
  readonly name: string
  readonly conditions: RuleText['conditions']
  readonly action: RuleText['action']
  readonly sideEffects: RuleText['sideEffects']
  readonly priority?: number
}

interface EditorProps {
  readonly from: Draft
  readonly known: Known
  /** What the buttons under it do. */
  readonly ways: readonly { readonly label: string; readonly save: (rule: Saving) => Promise<unknown> }[]
  /** Told whether there is something that is not saved. */
  readonly onEdited?: (isEdited: boolean) => void
}

const savingOf = (draft: Draft, { fields, lists }: Known): Saving => ({
  name: draft.name.trim(),
  conditions: conditionsOf(draft.conditions, fields, lists),
  action: actionOf(draft),
  sideEffects: draft.sideEffects,
  ...(draft.priority === '' ? {} : { priority: Number(draft.priority) }),
})

/** Read once for all conditions, which offer the values that fields had in them. */
const RECENT_EVENTS = 100
const NO_EVENTS: readonly Event[] = []

export function Editor({ from, known, ways, onEdited }: EditorProps) {
  const [draft, setDraft] = useState(from)
  const [saved, setSaved] = useState(() => JSON.stringify(savingOf(from, known)))
  const [tab, setTab] = useState<'form' | 'json'>('form')
  /** Why the text of the other tab is no rule; null: it is one, or is not shown. */
  const [textProblem, setTextProblem] = useState<string | null>(null)
  const act = useAct()
  const { lists } = known
  const recent = useLoad<CursorPage<Event>>('/v1/events', { query: { fields: 'full', limit: RECENT_EVENTS } })
  const conditions = useMemo(
    () => (isWhole(draft.conditions, known.fields, lists) ? conditionsOf(draft.conditions, known.fields, lists) : null),
    [draft.conditions, known, lists],
  )
  const action = useMemo(() => actionOf(draft), [draft])
  const rule = savingOf(draft, known)
  const isEdited = textProblem !== null || JSON.stringify(rule) !== saved
  useEffect(() => onEdited?.(isEdited), [isEdited])
  const change = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes })
  function choose(next: 'form' | 'json'): void {
    // The form cannot show such a text, which would be lost.
    if (textProblem === null) setTab(next)
  }
  function discard(): void {
    setDraft(from)
    setSaved(JSON.stringify(savingOf(from, known)))
    setTextProblem(null)
    setTab('form')
  }
  async function saveBy(save: (rule: Saving) => Promise<unknown>): Promise<void> {
    await save(rule)
    setSaved(JSON.stringify(rule))
  }
  const isReady = conditions !== null && draft.name.trim() !== '' && textProblem === null
  return (
    <div class="columns">
      <Card
        title="Rule"
        actions={
          <Tabs
            label="How to write it"
            chosen={tab}
            choose={choose}
            tabs={
              [
                ['form', 'Form'],
                ['json', 'JSON'],
              ] as const
            }
          />
        }
      >
        {tab === 'json' ? (
          <Json
            rule={rule}
            take={(text) => setDraft(draftOf(text))}
            problem={textProblem}
            setProblem={setTextProblem}
          />
        ) : (
          <div class="form">
            <TextField label="Name" value={draft.name} onChange={(name) => change({ name })} maxLength={200} required />
            <ConditionGroupEditor
              group={draft.conditions}
              known={known}
              recent={recent.data?.data ?? NO_EVENTS}
              onChange={(group) => change({ conditions: group })}
            />
            <div class="row top-aligned">
              <SelectField
                label="Then"
                value={draft.verdict}
                onChange={(verdict) => change({ verdict })}
                options={VERDICTS}
              />
              {draft.verdict === 'challenge' && (
                <SelectField
                  label="By"
                  value={draft.challengeType ?? ''}
                  onChange={(challengeType) => change({ challengeType: challengeType === '' ? null : challengeType })}
                  options={CHALLENGES}
                />
              )}
              <TextField
                label="Priority"
                type="number"
                value={draft.priority}
                onChange={(priority) => change({ priority })}
                hint={`Lower is asked first; empty: ${from.priority === '' ? 'last' : `stays ${from.priority}`}.`}
              />
            </div>
            <Effects
              effects={draft.sideEffects}
              lists={known.lists}
              onChange={(sideEffects) => change({ sideEffects })}
            />
          </div>
        )}
        <Problem error={act.error} />
        <div class="row">
          {can('rules:write') &&
            ways.map(({ label, save }, i) => (
              <button
                key={label}
                type="button"
                class={i === 0 ? 'primary' : ''}
                disabled={!isReady || act.isBusy}
                onClick={() => void act.run(() => saveBy(save))}
              >
                {label}
              </button>
            ))}
          {isEdited && (
            <button type="button" disabled={act.isBusy} onClick={discard}>
              Discard the changes
            </button>
          )}
        </div>
        {!can('rules:write') && <p class="quiet">Your role reads rules; changing them takes an editor.</p>}
      </Card>
      <BacktestPanel conditions={textProblem === null ? conditions : null} action={action} />
    </div>
  )
}

interface JsonProps {
  readonly rule: Saving
  readonly take: (rule: RuleText) => void
  readonly problem: string | null
  readonly setProblem: (problem: string | null) => void
}

function Json({ rule, take, problem, setProblem }: JsonProps) {
  const [text, setText] = useState(() => JSON.stringify(rule, null, 2))
  function change(next: string): void {
    setText(next)
    try {
      const read = JSON.parse(next) as RuleText
      if (!Array.isArray(read.conditions?.rules) || read.action?.verdict === undefined)
        throw new Error('no conditions or action')
      take({ ...read, name: String(read.name ?? '') })
      setProblem(null)
    } catch (error) {
      setProblem(`This is no rule yet: ${(error as Error).message}`)
    }
  }
  return (
    <>
      <AreaField label="The body of POST /v1/rules" rows={22} value={text} onChange={change} />
      {problem !== null && <p class="hint">{problem}</p>}
    </>
  )
}
