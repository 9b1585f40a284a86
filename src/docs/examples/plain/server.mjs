import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'

const { FINGERPOST_URL, FINGERPOST_TEST_SECRET_KEY, WEBHOOK_SECRET, PORT = '3000' } = process.env
const page = readFileSync(new URL('page.html', import.meta.url))

/** Never believe a verdict that comes from the browser. */
async function verdictOf(requestId = '') {
  if (!/^req_\w{26}$/.test(requestId)) return 'block'
  const headers = { Authorization: `Bearer ${FINGERPOST_TEST_SECRET_KEY}` }
  const answer = await fetch(`${FINGERPOST_URL}/v1/events/${requestId}`, { headers }).catch(() => null)
  if (answer?.status === 404) return 'block'
  return answer?.ok ? (await answer.json()).verdict : null // null: Fingerpost is away. This shop sells all the same.
}

/** Signed with our secret, and not long ago. */
function isGenuine({ headers }, body) {
  const stamp = headers['x-service-timestamp'] ?? ''
  const mac = createHmac('sha256', WEBHOOK_SECRET).update(`${stamp}.`).update(body).digest('hex')
  const [given, expected] = [headers['x-service-signature'] ?? '', `sha256=${mac}`].map((one) => Buffer.from(one))
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false
  return Math.abs(Date.now() / 1000 - Number(stamp)) <= 300
}

createServer(async (request, response) => {
  if (request.url === '/hook') {
    if (!isGenuine(request, await buffer(request))) return response.writeHead(401).end()
    console.log('told of', request.headers['x-service-event'])
    return response.end()
  }
  if (request.url !== '/buy') return response.setHeader('Content-Type', 'text/html; charset=utf-8').end(page)
  const verdict = await verdictOf(request.headers['x-fingerpost-request-id'])
  if (verdict === 'block') return response.writeHead(403).end('Please call us')
  response.end('Thank you')
}).listen(Number(PORT))
