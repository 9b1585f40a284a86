// POST /api/hook: what Fingerpost tells, once its signature has been checked.

import { webhookRoute } from '@fingerpost/node/next'

export const POST = webhookRoute({
  secret: process.env.WEBHOOK_SECRET,
  onEvent: async ({ type }) => {
    console.log('told of', type)
  },
})
