// POST /api/buy: only visitors pass whom no rule refuses.

import { openFingerpost } from '@fingerpost/node'
import { guarded } from '@fingerpost/node/next'

const fingerpost = openFingerpost({
  baseUrl: process.env.FINGERPOST_URL,
  key: process.env.FINGERPOST_TEST_SECRET_KEY,
})

export const POST = guarded({ fingerpost }, async (_request, event) =>
  // `event` is null when Fingerpost gave no answer and requests pass all the same.
  Response.json({ bought: true, visitor: event?.visitorId ?? null }),
)
