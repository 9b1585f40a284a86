// A mail server on loopback with just enough of SMTP to take letters, or to refuse them as it is told.

import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

export interface TakenLetter {
  readonly from: string
  readonly to: readonly string[]
  readonly text: string
}

export interface SmtpServer {
  readonly port: number
  readonly letters: TakenLetter[]
  /** Every line a client sent outside of letters. */
  readonly said: string[]
  /** What DATA is answered with instead of being taken; '': taken. */
  refusal: string
  close(): void
}

/** `user` and `password` must be given by AUTH PLAIN before anything is taken. */
export async function openSmtp(user: string, password: string): Promise<SmtpServer> {
  const sockets = new Set<Socket>()
  const letters: TakenLetter[] = []
  const said: string[] = []
  const state = { refusal: '' }
  const expected = Buffer.from(`\0${user}\0${password}`).toString('base64')

  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))
    const say = (line: string) => socket.write(`${line}\r\n`)
    let isKnown = false
    let from = ''
    let to: string[] = []
    let letter: string[] | null = null
    let rest = ''
    const take = (line: string) => {
      if (letter !== null) {
        if (line !== '.') return void letter.push(line.replace(/^\.\./, '.'))
        letters.push({ from, to, text: letter.join('\n') })
        letter = null
        return say('250 taken')
      }
      said.push(line)
      const [verb = ''] = line.toUpperCase().split(' ')
      if (verb === 'EHLO') return say('250-localhost\r\n250 AUTH PLAIN')
      if (verb === 'AUTH') {
        isKnown = line.endsWith(expected)
        return say(isKnown ? '235 welcome' : '535 unknown')
      }
      if (verb === 'QUIT') return socket.end('221 bye\r\n')
      if (!isKnown) return say('530 sign in first')
      const [, address = ''] = /<(.*)>/.exec(line) ?? []
      if (verb === 'MAIL') {
        from = address
        to = []
        return say('250 ok')
      }
      if (verb === 'RCPT') {
        to.push(address)
        return say('250 ok')
      }
      if (verb !== 'DATA') return say('502 no such command')
      if (state.refusal !== '') return say(state.refusal)
      letter = []
      return say('354 go on')
    }
    say('220 localhost')
    socket.on('data', (chunk) => {
      rest += chunk.toString('utf8')
      const lines = rest.split('\r\n')
      rest = lines.pop() ?? ''
      for (const line of lines) take(line)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(state, {
    port: (server.address() as AddressInfo).port,
    letters,
    said,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  })
}
