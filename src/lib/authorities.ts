// Whether a file holds certificates of authorities: TLS takes one that holds none without a word, and trusts nobody by it.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { reasonOf } from './plain.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** Why nobody can be trusted by the file; null: somebody can. */
export function authoritiesProblem(path: string): string | null {
  let found: readonly string[]
  try {
    found = readFileSync(path, 'utf8').match(CERTIFICATE) ?? []
  } catch (error) {
    return `${path} cannot be read: ${reasonOf(error)}`
  }
  if (found.length === 0) return `${path} holds no certificate in PEM`
  try {
    for (const text of found) new X509Certificate(text)
    return null
  } catch (error) {
    return `${path} holds a certificate that is damaged: ${reasonOf(error)}`
  }
}
