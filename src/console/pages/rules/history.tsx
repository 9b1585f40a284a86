// The versions of a rule: what each changed, and the way back to it.

import { useAct } from '../../lib/act.ts'
import { call, can } from '../../lib/api.ts'
import { usePages } from '../../lib/load.ts'
import type { Rule, RuleVersion } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { Empty, Problem } from '../../ui/state.tsx'
import { MomentText } from '../../ui/words.tsx'
import { diffLines } from './diff.ts'
import { UNSAVED } from './words.ts'

/** What a person changes; times are told beside it. */
function textOf(rule: Rule | null): string {
  if (rule === null) return ''
  const { name, status, priority, conditions, action, sideEffects } = rule
  return JSON.stringify({ name, status, priority, conditions, action, sideEffects }, null, 2)
}

interface HistoryProps {
  readonly rule: Rule
  readonly reload: () => void
  /** Whether the editor has changes, which another version would take the place of. */
  readonly isEdited: boolean
}

export function History({ rule, reload, isEdited }: HistoryProps) {
  const pages = usePages<RuleVersion>(`/v1/rules/${rule.id}/versions`, { query: { limit: 50 } })
  const act = useAct()
  const rollBack = (version: number) =>
    act.run(async () => {
      await call(`/v1/rules/${rule.id}/rollback`, { method: 'POST', body: { version } })
      pages.reload()
      reload()
    }, `The rule is as it was in version ${version}.`)
  return (
    <Card title="Versions">
      <Problem error={pages.error ?? act.error} />
      {isEdited && <p class="hint">{UNSAVED}</p>}
      {!pages.isFirst && pages.rows.length === 0 && <Empty title="No versions" />}
      <ol class="plain-list">
        {pages.rows.map((version, i) => (
          <li key={version.version}>
            <details open={i === 0}>
              <summary>
                <strong>Version {version.version}</strong> · {version.action} by {version.actor} ·{' '}
                <MomentText at={version.at} />
              </summary>
              <pre class="diff">
                {diffLines(textOf(pages.rows[i + 1]?.rule ?? null), textOf(version.rule))
                  .filter(({ text, side }) => text !== '' || side === 'same')
                  .map(({ side, text }, at) => (
                    <div key={at} data-side={side}>
                      {{ same: '  ', added: '+ ', removed: '- ' }[side]}
                      {text}
                    </div>
                  ))}
              </pre>
              {i > 0 && can('rules:write') && (
                <p class="row">
                  <button
                    type="button"
                    class="slim"
                    disabled={act.isBusy || isEdited}
                    onClick={() => void rollBack(version.version)}
                  >
                    Back to version {version.version}
                  </button>
                </p>
              )}
            </details>
          </li>
        ))}
      </ol>
      {pages.hasMore && (
        <button type="button" onClick={pages.more} disabled={pages.isLoading}>
          Load older
        </button>
      )}
    </Card>
  )
}
