// Mail over the SMTP server of whoever runs the service.

import { createRequire } from 'node:module'
import type Nodemailer from 'nodemailer'

const require = createRequire(import.meta.url)

export interface MailSettings {
  /** '': there is none. */
  readonly host: string
  readonly port: number
  readonly tls: 'starttls' | 'implicit' | 'none'
  /** '': nobody signs in. */
  readonly user: string
  readonly password: string
  readonly from: string
  readonly to: readonly string[]
}

export interface Letter {
  /** The same letter has the same name however often it is sent. */
  readonly name: string
  readonly subject: string
  readonly text: string
}

/** What went wrong, without anything that was sent. */
class MailRefused extends Error {
  override readonly name = 'MailRefused'
}

export interface Mailer {
  /** Resolves when the server has taken it; rejects with MailRefused. */
  send(letter: Letter): Promise<void>
}

const TIMEOUT_MS = 10_000

/** null: no server or nobody to write to. */
export function openMailer({ host, port, tls, user, password, from, to }: MailSettings): Mailer | null {
  if (host === '' || to.length === 0) return null
  // Loaded only where mail is sent: it would lengthen every start.
  const { createTransport } = require('nodemailer') as typeof Nodemailer
  const transport = createTransport({
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    ...(user === '' ? {} : { auth: { user, pass: password } }),
  })
  const sender = from === '' ? `fingerpost@${host}` : from
  return {
    async send({ name, subject, text }) {
      try {
        await transport.sendMail({ from: sender, to: [...to], subject, text, messageId: `<${name}@fingerpost>` })
      } catch (cause) {
        const { code, responseCode } = cause as { readonly code?: string; readonly responseCode?: number }
        // Not the error itself: it quotes the dialogue.
        throw new MailRefused(`the mail server did not take it: ${[code, responseCode].filter(Boolean).join(' ')}`)
      }
    },
  }
}
