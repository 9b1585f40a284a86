// Whether the files of TLS can be served with: each is read and parsed here, because what a driver says of a broken one names neither.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { reasonOf } from '../lib/plain.ts'
import type { Tls } from './port.ts'

export interface TlsProblem {
  /** The file that is at fault. */
  readonly file: keyof Tls
  readonly says: string
}

/** What is wrong with the certificate and its key; nothing: a server can use them. */
export function tlsProblems({ certFile, keyFile }: Tls): TlsProblem[] {
  const problems: TlsProblem[] = []
  function tried<T>(file: keyof Tls, what: string, attempt: () => T): T | null {
    try {
      return attempt()
    } catch (error) {
      problems.push({ file, says: `${what}: ${reasonOf(error)}` })
      return null
    }
  }
  const cert = tried('certFile', `${certFile} cannot be read`, () => readFileSync(certFile))
  const key = tried('keyFile', `${keyFile} cannot be read`, () => readFileSync(keyFile))
  const certificate =
    cert && tried('certFile', `${certFile} holds no certificate in PEM`, () => new X509Certificate(cert))
  const privateKey = key && tried('keyFile', `${keyFile} holds no private key in PEM`, () => createPrivateKey(key))
  if (cert === null || key === null || certificate === null || privateKey === null) return problems
  if (!certificate.checkPrivateKey(privateKey)) {
    problems.push({ file: 'keyFile', says: `${keyFile} is not the key of ${certFile}` })
  } else tried('certFile', `${certFile} cannot be used`, () => createSecureContext({ cert, key }))
  return problems
}
