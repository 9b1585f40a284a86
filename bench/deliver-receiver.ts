// The receivers of `bench deliver`, in a process of their own: one TLS port for every path; `/hang…` never answers. Tells, when
// asked, how many requests came since it was asked last and how long after their event.

import { listenNative } from '../src/http/uws.ts'
import { atShare } from './measure.ts'

const [keyFile = '', certFile = ''] = process.argv.slice(2)
let hits = 0
let agesMs: number[] = []

const { port } = await listenNative(
  { host: '127.0.0.1', port: 0, tls: { keyFile, certFile } },
  {
    serve(raw, request) {
      const isHanging = request.getUrl().startsWith('/hang')
      let body = ''
      raw.onAborted(() => {})
      raw.onData((chunk, isLast) => {
        body += Buffer.from(chunk).toString('latin1')
        if (!isLast || isHanging) return
        hits += 1
        const at = /"createdAt":"([^"]+)"/.exec(body)?.[1]
        if (at !== undefined) agesMs.push(Date.now() - Date.parse(at))
        raw.cork(() => void raw.end())
      })
    },
    refuse: (raw) => raw.close(),
  },
)

process.on('message', () => {
  agesMs.sort((a, b) => a - b)
  const at = (share: number) => atShare(agesMs, share) ?? 0
  process.send?.({ hits, p50: at(0.5), p95: at(0.95), p99: at(0.99), last: agesMs.at(-1) ?? 0 })
  hits = 0
  agesMs = []
})
process.send?.({ port })
