// The end of a form: why it was refused, the button that sends it, and the way out where there is one.

import type { Act } from '../lib/act.ts'
import { Problem } from './state.tsx'

export function FormEnd({
  act,
  action,
  tone = 'primary',
  isReady = true,
  onCancel,
}: {
  readonly act: Pick<Act, 'isBusy' | 'error'>
  readonly action: string
  readonly tone?: 'primary' | 'danger' | ''
  readonly isReady?: boolean
  readonly onCancel?: () => void
}) {
  return (
    <>
      <Problem error={act.error} />
      <div class="row">
        <button type="submit" class={tone} disabled={act.isBusy || !isReady}>
          {action}
        </button>
        {onCancel !== undefined && (
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        )}
      </div>
    </>
  )
}
