// As many identifications at once as there are connections, over and over, sent by what costs the sender next to nothing: a server under
// it is full.

import { connect, type Socket } from 'node:net'
import { browserBody } from '../helpers/client.ts'
import type { Keys } from '../helpers/server.ts'

export interface Flood {
  /** Their ids, in the order of their answers. */
  readonly accepted: readonly string[]
  readonly statuses: ReadonlyMap<number, number>
  /** Resolves when what is under way is answered. */
  end(): Promise<void>
}

const DEVICES = 200
const HEAD_END = '\r\n\r\n'

export function openFlood({ port, keys }: { readonly port: number; readonly keys: Keys }, connections: number): Flood {
  const accepted: string[] = []
  const statuses = new Map<number, number>()
  let isOver = false
  const requests = Array.from({ length: DEVICES }, (_, n) => {
    const body = JSON.stringify(browserBody(`GPU of device ${n}`))
    const head = ['POST /v1/identify HTTP/1.1', 'Host: flood', `Authorization: Bearer ${keys.secret}`]
    return [...head, 'Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`, '', body].join(
      '\r\n',
    )
  })

  function take(answer: string): boolean {
    const headEnd = answer.indexOf(HEAD_END)
    if (headEnd < 0) return false
    const length = Number(/content-length: (\d+)/i.exec(answer)?.[1] ?? 0)
    const body = answer.slice(headEnd + HEAD_END.length)
    if (Buffer.byteLength(body) < length) return false
    const status = Number(answer.slice(9, 12))
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (status === 200 || status === 202) accepted.push(JSON.parse(body).requestId)
    return true
  }

  function keepAsking(socket: Socket, first: number): Promise<void> {
    let n = first
    let answer = ''
    const ask = () => socket.write(requests[n++ % DEVICES] as string)
    return new Promise((resolve, reject) => {
      socket.setEncoding('utf8')
      socket.on('data', (chunk: string) => {
        answer += chunk
        if (!take(answer)) return
        answer = ''
        if (isOver) socket.end()
        else ask()
      })
      socket.on('error', reject)
      socket.on('close', () => (isOver ? resolve() : reject(new Error('the server closed a connection'))))
      ask()
    })
  }

  const asking = Array.from({ length: connections }, (_, n) => keepAsking(connect(port, '127.0.0.1'), n))
  const all = Promise.all(asking)
  all.catch(() => undefined)
  return {
    accepted,
    statuses,
    async end() {
      isOver = true
      await all
    },
  }
}
