// Small things that mean the same on every page: verdicts, signals, statuses, ids and moments.

import { isValidElement } from 'preact'
import { Link } from 'wouter-preact'
import { ago, momentText, short } from '../lib/format.ts'
import { pageOfId } from '../lib/place.ts'

const VERDICT_KINDS: Readonly<Record<string, string>> = { allow: 'good', challenge: 'warn', block: 'bad' }

/** null: no rule was live, or the event could not be decided, which is no "allow". */
export function VerdictChip({ of: verdict }: { readonly of: string | null }) {
  if (verdict === null) {
    return (
      <span class="chip" data-kind="open">
        no verdict
      </span>
    )
  }
  return (
    <span class="chip" data-kind={VERDICT_KINDS[verdict] ?? ''}>
      {verdict}
    </span>
  )
}

const STATUS_KINDS: Readonly<Record<string, string>> = {
  live: 'good',
  active: 'good',
  delivered: 'good',
  monitor: 'new',
  pending: 'new',
  invited: 'new',
  paused: 'warn',
  retrying: 'warn',
  disabled: 'bad',
  failed: 'bad',
}
export function StatusChip({ of: status }: { readonly of: string }) {
  return (
    <span class="chip" data-kind={STATUS_KINDS[status] ?? 'open'}>
      {status}
    </span>
  )
}

/** `undetermined` is a state of its own: the data cannot tell. */
export function SignalChip({ state }: { readonly state: 'detected' | 'clear' | 'undetermined' }) {
  const kind = { detected: 'bad', clear: 'good', undetermined: 'open' }[state]
  return (
    <span class="chip" data-kind={kind}>
      {state}
    </span>
  )
}

export function Id({ of: id, whole = false }: { readonly of: string; readonly whole?: boolean }) {
  const page = pageOfId(id)
  const text = whole ? id : short(id)
  if (page === null) return <code title={id}>{text}</code>
  return (
    <Link href={page} class="mono" title={id}>
      {text}
    </Link>
  )
}

export function MomentText({ at, relative = false }: { readonly at: string | null; readonly relative?: boolean }) {
  if (at === null) return <span class="quiet">never</span>
  return (
    <time dateTime={at} title={relative ? momentText(at) : at}>
      {relative ? ago(at) : momentText(at)}
    </time>
  )
}

/** A value that may be missing, which is told from one that is empty. */
function ValueText({ of: value }: { readonly of: unknown }) {
  if (value === null || value === undefined) return <span class="quiet">not known</span>
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>
  if (typeof value === 'object') return <code>{JSON.stringify(value)}</code>
  return <>{String(value)}</>
}

export function FactList({ of: facts }: { readonly of: readonly (readonly [string, unknown])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{isValidElement(value) ? value : <ValueText of={value} />}</dd>
        </div>
      ))}
    </dl>
  )
}
