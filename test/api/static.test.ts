// The files that browsers load, from a real server: compressed as asked for, the SDK under an address that never changes as well.

import { request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import { until } from '../helpers/processes.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, get } = await openTenant()

/** Not decoded, unlike what fetch gives. */
async function read(path: string, accepted: string, etag = '') {
  const headers = { 'Accept-Encoding': accepted, ...(etag === '' ? {} : { 'If-None-Match': etag }) }
  return new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    const asking = request(server.url + path, { headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      )
    })
    asking.on('error', reject).end()
  })
}

t.test('scripts and pages come in the coding that is asked for, and unchanged ones not again', async (t) => {
  const { body: plain } = await read('/sdk.js', 'identity')
  await until('files are compressed', 60_000, async () => 'content-encoding' in (await read('/sdk.js', 'gzip')).headers)
  await until('files are compressed', 60_000, async () => 'content-encoding' in (await read('/sdk.js', 'br')).headers)
  const cases: [string, string | undefined, (body: Buffer) => Buffer][] = [
    ['gzip, deflate, br', 'br', brotliDecompressSync],
    ['gzip;q=0.5', 'gzip', gunzipSync],
    ['br;q=0, gzip', 'gzip', gunzipSync],
    ['br; q=0.0, gzip;q=0', undefined, (body) => body],
    ['zstd', undefined, (body) => body],
    ['', undefined, (body) => body],
  ]
  for (const [accepted, coding, decode] of cases) {
    const { status, headers, body } = await read('/sdk.js', accepted)
    t.equal(status, 200, accepted)
    t.equal(headers['content-encoding'], coding, accepted)
    t.ok(decode(body).equals(plain), accepted)
    t.equal(headers.vary, 'Accept-Encoding')
    const again = await read('/sdk.js', accepted, String(headers.etag))
    t.equal(again.status, 304, accepted)
    t.equal(again.body.length, 0)
  }
})

t.test('the SDK has an address of its own for each build, told by /v1/meta and kept for ever', async (t) => {
  const { sdk } = (await get('/v1/meta')).body as { sdk: { version: string; path: string } }
  t.match(sdk.path, new RegExp(`^/sdk/${sdk.version.replaceAll('.', '\\.')}-[\\w-]{12}\\.js$`))
  const versioned = await read(sdk.path, 'identity')
  t.equal(versioned.status, 200)
  t.match(versioned.headers['cache-control'], /immutable/)
  t.equal(versioned.headers['access-control-allow-origin'], '*')
  const latest = await read('/sdk.js', 'identity')
  t.ok(versioned.body.equals(latest.body))
  t.notMatch(latest.headers['cache-control'], /immutable/)
  t.equal((await read(sdk.path.replace(/-.{12}\./, '-000000000000.'), 'identity')).status, 404)
})
