// Secrets at rest: texts encrypted under a master key that lies in a file of its own, each bound to what it belongs to.

import { createCipheriv, createDecipheriv, createHash, createHmac } from 'node:crypto'
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { RandomBytes } from '../domain/ids.ts'
import { Unreadable } from './failures.ts'
import { makeFolder } from './make-folder.ts'

const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
const CIPHER = 'aes-256-gcm'
const FORM = /^v1\.([0-9a-f]{16})\.([\w-]+)$/

export interface Sealer {
  /** Names the key without telling anything of it. */
  readonly keyId: string
  /** `context` must be the same when it is opened. */
  seal(text: string, context: string): string
  /** Throws Unreadable for what was not sealed under this key and context. */
  open(sealed: string, context: string): string
  /** Base64url of what only holders of the key can say about a text. */
  sign(text: string): string
}

export function openSealer(key: Uint8Array, random: RandomBytes): Sealer {
  const keyId = createHash('sha256').update('master key id\0').update(key).digest('hex').slice(0, 16)
  return {
    keyId,
    seal(text, context) {
      const iv = random(IV_BYTES)
      const cipher = createCipheriv(CIPHER, key, iv).setAAD(Buffer.from(context))
      const parts = [iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]
      return `v1.${keyId}.${Buffer.concat(parts).toString('base64url')}`
    },
    open(sealed, context) {
      const [, sealedBy, text] = FORM.exec(sealed) ?? []
      const bytes = Buffer.from(text ?? '', 'base64url')
      if (sealedBy !== keyId || bytes.length < IV_BYTES + TAG_BYTES) throw foreign()
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES)).setAAD(Buffer.from(context))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
      } catch {
        throw foreign()
      }
    },
    sign: (text) => createHmac('sha256', key).update(`sign\0${text}`).digest('base64url'),
  }
}

/** The id of the key that a text was sealed under; null for one that is not sealed. */
export const sealedBy = (text: string): string | null => FORM.exec(text)?.[1] ?? null

const foreign = () => new Unreadable('a secret was not sealed under the master key of this process')

/** The key in the file; null when there is no such file. Throws Unreadable for one that holds no key. */
export function readMasterKey(path: string): Uint8Array | null {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new Unreadable(`the master key ${path} cannot be read`, { cause: error })
  }
  const key = Buffer.from(text.trim(), 'hex')
  if (key.length !== KEY_BYTES) throw new Unreadable(`${path} holds no master key: 64 hexadecimal digits`)
  return key
}

/** Makes the file, 0600, with a new key, and gives the key it has then: that of another process that was faster, maybe. */
export const makeMasterKey = (path: string, random: RandomBytes): Uint8Array =>
  placeMasterKey(path, random(KEY_BYTES), random)

/** The same with a key that is given. */
export function placeMasterKey(path: string, placed: Uint8Array, random: RandomBytes): Uint8Array {
  makeFolder(dirname(path))
  // Whole before it has its name: another process may be about to read it.
  const draft = `${path}.${Buffer.from(random(8)).toString('hex')}`
  try {
    writeFileSync(draft, `${Buffer.from(placed).toString('hex')}\n`, {
      mode: 0o600,
      flag: 'wx',
      flush: true,
    })
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  const key = readMasterKey(path)
  if (key === null) throw new Unreadable(`the master key ${path} has disappeared`)
  return key
}
