'use client'

import { useFingerpost } from '@fingerpost/browser/react'

// The SDK is asked under a path of this site: see next.config.mjs.
const options = { publicKey: process.env.NEXT_PUBLIC_FINGERPOST_KEY, endpoint: '/x7f3', immediate: false }

export function Buy() {
  const { isLoading, identify } = useFingerpost(options)

  async function buy() {
    const seen = await identify({ tag: { action: 'buy' } }).catch(() => null)
    const headers = { 'x-fingerpost-request-id': seen?.requestId ?? '' }
    const answer = await fetch('/api/buy', { method: 'POST', headers })
    alert(answer.ok ? 'Thank you' : 'Please call us')
  }

  return (
    <button type="button" disabled={isLoading} onClick={buy}>
      Buy
    </button>
  )
}
