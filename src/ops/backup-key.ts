// The master key in a backup: sealed under a passphrase, in a file of its own beside what the manifest names.

import { createCipheriv, createDecipheriv, scryptSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RandomBytes } from '../domain/ids.ts'
import { Unreadable } from '../lib/failures.ts'
import { placeMasterKey, readMasterKey } from '../lib/sealed.ts'
import { writeBackupDurably } from './backup.ts'

const FILE = 'master-key.json'
const KIND = 'fingerpost-master-key'
const CIPHER = 'aes-256-gcm'
/** 64 MiB and a good part of a second for each guess. */
const COST = { N: 65_536, r: 8, p: 1, maxmem: 134_217_728 } as const
const [SALT_BYTES, IV_BYTES, KEY_BYTES, TAG_BYTES] = [16, 12, 32, 16]
const PASSPHRASE_CHARS_MIN = 12

/** '' where neither is given. Throws Unreadable for one that is too short, or a file that cannot be read. */
export function readPassphrase(text: string, file: string): string {
  let passphrase = text
  if (file !== '') {
    try {
      passphrase = readFileSync(file, 'utf8').split(/\r?\n/, 1)[0] ?? ''
    } catch (cause) {
      throw new Unreadable(`backup.passphraseFile: ${file} cannot be read`, { cause })
    }
    if (passphrase === '') throw new Unreadable(`backup.passphraseFile: ${file} begins with an empty line`)
  }
  if (passphrase !== '' && passphrase.length < PASSPHRASE_CHARS_MIN) {
    throw new Unreadable(`the passphrase of a backup takes at least ${PASSPHRASE_CHARS_MIN} characters`)
  }
  return passphrase
}

/** Throws Unreadable where there is no key. */
export async function backupMasterKey(dir: string, keyFile: string, passphrase: string, random: RandomBytes) {
  const key = readMasterKey(keyFile)
  if (key === null) throw new Unreadable(`there is no master key in ${keyFile}`)
  const [salt, iv] = [random(SALT_BYTES), random(IV_BYTES)]
  const cipher = createCipheriv(CIPHER, scryptSync(passphrase, salt, KEY_BYTES, COST), iv).setAAD(Buffer.from(KIND))
  const sealed = Buffer.concat([cipher.update(key), cipher.final(), cipher.getAuthTag()])
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
  const { N, r, p } = COST
  const content = {
    kind: KIND,
    kdf: 'scrypt',
    N,
    r,
    p,
    salt: text(salt),
    cipher: CIPHER,
    iv: text(iv),
    sealed: text(sealed),
  }
  await writeBackupDurably(dir, FILE, `${JSON.stringify(content, null, 2)}\n`)
}

/** The key in the backup; null where it has none, 'closed' without a passphrase. Throws Unreadable for a wrong one. */
export function openBackedUpKey(dir: string, passphrase: string): Uint8Array | 'closed' | null {
  let file: string
  try {
    file = readFileSync(join(dir, FILE), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new Unreadable(`${join(dir, FILE)} cannot be read`, { cause: error })
  }
  if (passphrase === '') return 'closed'
  try {
    const { salt, iv, sealed } = JSON.parse(file) as Record<string, string>
    const bytes = (text = '') => Buffer.from(text, 'base64')
    const under = scryptSync(passphrase, bytes(salt), KEY_BYTES, COST)
    const decipher = createDecipheriv(CIPHER, under, bytes(iv)).setAAD(Buffer.from(KIND))
    decipher.setAuthTag(bytes(sealed).subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(bytes(sealed).subarray(0, -TAG_BYTES)), decipher.final()])
  } catch (cause) {
    throw new Unreadable(`${join(dir, FILE)} does not open with this passphrase`, { cause })
  }
}

/** Puts it where the deployment reads it. Throws Unreadable where another key lies. */
export function restoreMasterKey(keyFile: string, key: Uint8Array, random: RandomBytes): void {
  const there = readMasterKey(keyFile)
  if (there !== null && !Buffer.from(there).equals(key)) throw new Unreadable(`${keyFile} holds another master key`)
  if (there === null) placeMasterKey(keyFile, key, random)
}
