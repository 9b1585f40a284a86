// How a receiver checks a delivery, and a box to find out why a check fails.

import { useState } from 'preact/hooks'
import { Code } from '../../ui/copy.tsx'
import { AreaField, TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { check, type SignatureFinding } from './verify.ts'

const RECEIVER = `import { verifyWebhook } from '@fingerpost/node'

if (!verifyWebhook(rawBody, request.headers, process.env.WEBHOOK_SECRET)) {
  return response.writeHead(401).end()
}`

export function VerifyBox() {
  const canSign = crypto.subtle !== undefined
  const [delivered, setDelivered] = useState({ secret: '', timestamp: '', body: '', signature: '' })
  const [findings, setFindings] = useState<readonly SignatureFinding[] | null>(null)
  const change = (name: keyof typeof delivered) => (value: string) => {
    setDelivered({ ...delivered, [name]: value })
    setFindings(null)
  }
  const submit = (event: Event) => {
    event.preventDefault()
    void check(delivered, Date.now()).then(setFindings)
  }
  return (
    <div class="columns">
      <Card title="Try a delivery">
        <p class="quiet">Paste what your receiver got. It is checked here in the browser and sent nowhere.</p>
        {!canSign && (
          <p class="hint">Browsers compute signatures only on pages that came over HTTPS or from localhost.</p>
        )}
        <form class="form" onSubmit={submit}>
          <TextField
            label="Secret"
            type="password"
            value={delivered.secret}
            onChange={change('secret')}
            required
            autocomplete="off"
          />
          <TextField label="X-Service-Timestamp" value={delivered.timestamp} onChange={change('timestamp')} required />
          <TextField
            label="X-Service-Signature"
            value={delivered.signature}
            onChange={change('signature')}
            required
            placeholder="sha256=…"
          />
          <AreaField label="Raw body" value={delivered.body} onChange={change('body')} />
          <div class="row">
            <button type="submit" class="primary" disabled={!canSign}>
              Check
            </button>
          </div>
        </form>
        {findings !== null && (
          <div role="status">
            <ul class="plain-list">
              {findings.map(({ isRight, says }) => (
                <li key={says} class="row">
                  <span class="chip" data-kind={isRight ? 'good' : 'bad'}>
                    {isRight ? 'right' : 'wrong'}
                  </span>
                  <span>{says}</span>
                </li>
              ))}
            </ul>
          </div>
        )}
      </Card>
      <Card title="In your receiver">
        <Code label="Node, on the bytes as they arrive" text={RECEIVER} />
        <p>
          <a href="/docs">The documentation</a> has the same for Python, Go and a shell.
        </p>
      </Card>
    </div>
  )
}
