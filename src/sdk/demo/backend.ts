// The part of the page behind the link: what a back end gets of each visit, a rule to try, visits as they come, and what to paste.

import { chip, element, make, offer, say } from './dom.ts'
import { blockVisitor, newestVisits, type Rule, readEvent, removeRule, type Summary } from './inside.ts'
import { showEvent } from './verdict.ts'

const everyMs = 3_000
const timeFormat = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

/** `again` identifies this browser once more and resolves with what `show` is to be given. */
export function openBackEnd(publicKey: string, again: () => Promise<void>) {
  let own: string | null = null
  let shown: string | null = null
  let rule: Rule | null = null
  let listed = ''
  const ruleButton = element<HTMLButtonElement>('rule')

  for (const part of Array.from(document.querySelectorAll<HTMLElement>('[data-behind-link]'))) part.hidden = false
  ruleButton.addEventListener('click', () => void changeRule())
  offerSnippets(publicKey)
  void follow()

  async function show(requestId: string): Promise<void> {
    try {
      const { event, recognition } = await readEvent(requestId)
      showEvent(event, recognition)
      shown = requestId
      for (const row of Array.from(element('visits').querySelectorAll<HTMLElement>('[data-request]'))) {
        row.setAttribute('aria-pressed', String(row.dataset.request === requestId))
      }
      element('backend-failure').hidden = true
    } catch (error) {
      fail('backend-failure', error)
    }
    listed = ''
    await list()
  }

  async function changeRule(): Promise<void> {
    if (own === null) return
    ruleButton.disabled = true
    try {
      if (rule === null) {
        rule = await blockVisitor(own)
        say('rule-told', 'The rule is in force. This browser identified again, and the verdict above is the rule’s.')
        say('rule', 'Remove the rule')
      } else {
        await removeRule(rule.id)
        rule = null
        say('rule-told', 'The rule is gone. This browser identified again, and nothing blocks it.')
        say('rule', 'Block this browser')
      }
      element('rule-failure').hidden = true
      await again()
      element('backend').scrollIntoView({ block: 'start' })
    } catch (error) {
      fail('rule-failure', error)
    }
    ruleButton.disabled = false
  }

  async function follow(): Promise<void> {
    for (;;) {
      if (!document.hidden) await list()
      await new Promise((resolve) => setTimeout(resolve, everyMs))
    }
  }

  async function list(): Promise<void> {
    try {
      const visits = await newestVisits()
      const text = JSON.stringify([visits, shown])
      if (text === listed) return
      listed = text
      const focused = document.activeElement?.getAttribute('data-request')
      element('visits').replaceChildren(...visits.map(visitRow))
      if (focused) document.querySelector<HTMLElement>(`[data-request="${focused}"]`)?.focus()
      say('visits-told', visits.length === 0 ? 'None yet.' : '')
    } catch (error) {
      say('visits-told', error instanceof Error ? error.message : String(error))
    }
  }

  function visitRow({ requestId, visitorId, verdict, timestamp }: Summary): HTMLElement {
    const button = make(
      'button',
      'visit',
      make('span', 'quiet', timeFormat.format(new Date(timestamp))),
      make('span', 'mono', visitorId),
      chip(verdict === 'block' ? 'failed' : verdict === 'challenge' ? 'pending' : 'none', verdict ?? 'no verdict'),
    )
    button.dataset.request = requestId
    button.setAttribute('type', 'button')
    button.setAttribute('aria-pressed', String(requestId === shown))
    button.addEventListener('click', () => void show(requestId))
    return make('li', '', button)
  }

  return {
    /** Of this browser. */
    async identified(requestId: string, visitorId: string | null): Promise<void> {
      own = visitorId
      if (visitorId !== null) {
        const condition = { field: 'visitorId', operator: 'equals', value: visitorId }
        const conditions = { operator: 'AND', rules: [condition] }
        say(
          'rule-body',
          JSON.stringify(
            { name: 'Demo: block this browser', status: 'live', conditions, action: { verdict: 'block' } },
            null,
            2,
          ),
        )
      }
      await show(requestId)
    },
  }
}

function fail(id: string, error: unknown): void {
  say(id, error instanceof Error ? error.message : String(error))
  element(id).hidden = false
}

function offerSnippets(publicKey: string): void {
  const key = publicKey.replace(/^(pk_test_).*/, '$1…')
  offer(
    'page-snippet',
    'copy-page',
    `<script src="${location.origin}/sdk.js"></script>
<script>
  const fingerpost = Fingerpost.load({ publicKey: '${key}' }) // your public test key

  async function signIn(form) {
    // Resolves with null where it fails: your page goes on.
    const visit = await fingerpost.tryGet({ tag: { action: 'login' } })
    form.elements.requestId.value = visit?.requestId ?? ''
    form.submit()
  }
</script>`,
  )
  offer(
    'server-snippet',
    'copy-server',
    `const { FINGERPOST_URL, FINGERPOST_TEST_SECRET_KEY } = process.env

async function judge(requestId) {
  const answer = await fetch(\`\${FINGERPOST_URL}/v1/events/\${requestId}\`, {
    headers: { Authorization: \`Bearer \${FINGERPOST_TEST_SECRET_KEY}\` },
  })
  const { verdict, signals } = await answer.json()
  return verdict === 'block' ? 'refuse' : signals?.bot?.detected ? 'ask for more' : 'let in'
}`,
  )
}
