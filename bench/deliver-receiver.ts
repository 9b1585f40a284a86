// The receivers of `bench deliver`, in a process of their own: one TLS port for every path; `/hang…` never answers. Tells, when
// asked, how many requests came since it was asked last and how long after their event.

import uWS from 'uWebSockets.js'

const [keyFile = '', certFile = ''] = process.argv.slice(2)
let hits = 0
let agesMs: number[] = []

const app = uWS.SSLApp({ key_file_name: keyFile, cert_file_name: certFile })
app.post('/*', (response, request) => {
  const isHanging = request.getUrl().startsWith('/hang')
  let body = ''
  response.onAborted(() => {})
  response.onData((chunk, isLast) => {
    body += Buffer.from(chunk).toString('latin1')
    if (!isLast || isHanging) return
    hits += 1
    const at = /"createdAt":"([^"]+)"/.exec(body)?.[1]
    if (at !== undefined) agesMs.push(Date.now() - Date.parse(at))
    response.cork(() => response.end())
  })
})
app.listen('127.0.0.1', 0, (socket) => {
  process.send?.({ port: socket ? uWS.us_socket_local_port(socket) : 0 })
})

process.on('message', () => {
  agesMs.sort((a, b) => a - b)
  const at = (share: number) => agesMs[Math.min(agesMs.length - 1, Math.floor(agesMs.length * share))] ?? 0
  process.send?.({ hits, p50: at(0.5), p95: at(0.95), p99: at(0.99), last: agesMs.at(-1) ?? 0 })
  hits = 0
  agesMs = []
})
