// The yardstick: a bare uWebSockets server that reads the same body, parses it and answers as many bytes. Nothing else.

import uWS from 'uWebSockets.js'

const ANSWER = JSON.stringify({ ok: true, padding: 'x'.repeat(300) })

uWS
  .App()
  .post('/*', (res) => {
    let aborted = false
    let body: Buffer | null = null
    res.onAborted(() => {
      aborted = true
    })
    res.onData((chunk, isLast) => {
      const part = Buffer.from(chunk)
      if (!isLast || body !== null) body = body === null ? Buffer.from(part) : Buffer.concat([body, part])
      if (!isLast) return
      JSON.parse((body ?? part).toString('utf8'))
      if (!aborted) res.cork(() => void res.writeHeader('Content-Type', 'application/json').end(ANSWER))
    })
  })
  .get('/*', (res) => void res.end('ok'))
  .listen('127.0.0.1', Number(process.argv[2]), (socket) => {
    if (!socket) process.exit(1)
    process.send?.('listening')
  })
