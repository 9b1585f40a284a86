// The same shop in Express: a guard in front of the purchase, and a receiver of webhooks.

import { fileURLToPath } from 'node:url'
import { openFingerpost } from '@fingerpost/node'
import { guard, webhookReceiver } from '@fingerpost/node/express'
import express from 'express'

const { FINGERPOST_URL, FINGERPOST_TEST_SECRET_KEY, WEBHOOK_SECRET, PORT = '3000' } = process.env
const fingerpost = openFingerpost({ baseUrl: FINGERPOST_URL, key: FINGERPOST_TEST_SECRET_KEY })
const refuse = (_judgement, _request, response) => response.status(403).send('Please call us')

const app = express()
// Before any parser of bodies: the signature is over the bytes as they arrived.
app.post('/hook', webhookReceiver({ secret: WEBHOOK_SECRET, onEvent: ({ type }) => console.log('told of', type) }))
app.post('/buy', guard({ fingerpost, onRefused: refuse }), (_request, response) => response.send('Thank you'))
app.use(express.static(fileURLToPath(new URL('../plain', import.meta.url)), { index: 'page.html' }))
app.listen(Number(PORT))
