// Why the event has its visitor: the method, who else came into question, how each trait compared.

import { useLoad } from '../../lib/load.ts'
import type { Recognition } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { Shown } from '../../ui/state.tsx'
import { FactList, Id } from '../../ui/words.tsx'

const METHODS: Readonly<Record<Recognition['method'], string>> = {
  token: 'Its storage had a token that this server gave out.',
  exact: 'It had no token; all that identifies it is as before.',
  linked: 'It had no token; it is most likely the same device.',
  new: 'Nobody known fits well enough, so it is a new visitor.',
}
const KINDS: Readonly<Record<string, string>> = { agrees: 'good', alternates: 'new', differs: 'bad', unknown: 'open' }

export function RecognitionCard({ requestId }: { readonly requestId: string }) {
  const loaded = useLoad<Recognition>(`/v1/events/${requestId}/identity`)
  return (
    <Card title="Why this visitor">
      <Shown of={loaded}>
        {(found) => (
          <>
            <p>{METHODS[found.method]}</p>
            <FactList
              of={[
                ['Look-alikes', found.anonymitySet === 1 ? 'none: it stands alone' : `${found.anonymitySet} visitors`],
                ['Compared', `${found.compared} visitors`],
                ['Browser version', found.browserVersion],
                ['Network', found.network],
                [
                  'Token',
                  found.tokenGeneration.presented === null
                    ? 'none came'
                    : `generation ${found.tokenGeneration.presented}`,
                ],
              ]}
            />
            {found.agreement !== null && (
              <ul class="row plain-list" aria-label="How traits compare">
                {Object.entries(found.agreement)
                  .filter(([, agreement]) => agreement !== 'unknown')
                  .map(([name, agreement]) => (
                    <li key={name} class="chip" data-kind={KINDS[agreement] ?? 'open'}>
                      {name} {agreement}
                    </li>
                  ))}
              </ul>
            )}
            {found.candidates.length > 0 && (
              <ol class="plain-list">
                {found.candidates.map(({ visitorId, score }, i) => (
                  <li key={visitorId ?? i} class="row spread">
                    {visitorId === null ? <span class="quiet">erased since</span> : <Id of={visitorId} />}
                    <span class="quiet">score {score}</span>
                  </li>
                ))}
              </ol>
            )}
            {found.evidence.length > 0 && <p class="quiet small">Noticed: {found.evidence.join(', ')}</p>}
          </>
        )}
      </Shown>
    </Card>
  )
}
