// The yardstick: the native HTTP server with nothing behind it, which reads the same body, parses it and answers as many bytes.

import { listenNative } from '../src/http/uws.ts'

const ANSWER = JSON.stringify({ ok: true, padding: 'x'.repeat(300) })

await listenNative(
  { host: '127.0.0.1', port: Number(process.argv[2]) },
  {
    serve(raw, request) {
      if (request.getMethod() === 'get') return void raw.end('ok')
      let aborted = false
      let body: Buffer | null = null
      raw.onAborted(() => {
        aborted = true
      })
      raw.onData((chunk, isLast) => {
        const part = Buffer.from(chunk)
        if (!isLast || body !== null) body = body === null ? Buffer.from(part) : Buffer.concat([body, part])
        if (!isLast) return
        JSON.parse((body ?? part).toString('utf8'))
        if (aborted) return
        raw.cork(() => {
          raw.writeHeader('Content-Type', 'application/json')
          raw.end(ANSWER)
        })
      })
    },
    refuse: (raw) => raw.close(),
  },
)
process.send?.('listening')
