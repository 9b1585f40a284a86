// What a backup is: a folder of compressed files of frames and a manifest, written last, that names and seals them all.

import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Unreadable } from '../lib/failures.ts'
import type { Seq } from '../log/log.ts'
import { COUNTED_NOUNS, type ConfigurationCounts } from '../records/configuration-counts.ts'

export const MANIFEST = 'manifest.json'
const KIND = 'fingerpost-backup'
const FORMAT = 1
const MANIFEST_BYTES_MAX = 4_194_304
const PARTITIONS_MAX = 1_024

export interface BackupFile {
  readonly name: string
  readonly bytes: number
  /** Hex, of the file as it is. */
  readonly sha256: string
  /** Uncompressed. */
  readonly rawBytes: number
  /** Records of the log or the kv, or rows of a table. */
  readonly records: number
}

/** A partition at the moment its part of the backup was complete. */
export interface BackupPartition {
  /** State holds what was decided up to this record of `events`; the later ones in the backup are to be applied to it. */
  readonly stateAt: Seq
  /** The last record of `events`. */
  readonly eventsTo: Seq
  /** The last identification decided by it. */
  readonly decidedTo: Seq
  /** Events of earlier identifications are rows, those from here on are in `events`. */
  readonly rowsBefore: Seq
}

export interface Manifest {
  readonly kind: typeof KIND
  readonly format: number
  readonly product: string
  readonly deployment: string
  /** ISO 8601. */
  readonly createdAt: string
  readonly partitions: readonly BackupPartition[]
  readonly files: readonly BackupFile[]
  /** Counted while the files were written; absent where it changed meanwhile, and in backups of older builds. */
  readonly configuration?: ConfigurationCounts
  /** Hex SHA-256 of everything above. */
  readonly seal: string
}

const SHARED_FILES = ['changes.gz', 'dead.gz', 'rows.gz', 'erasures.gz', 'quarantine.gz'] as const
export const filesOfPartition = (partition: number) =>
  ({
    identifications: `identifications-${partition}.gz`,
    events: `events-${partition}.gz`,
    state: `state-${partition}.gz`,
  }) as const

export function sealManifest(about: Omit<Manifest, 'kind' | 'format' | 'seal'>): Manifest {
  const { product, deployment, createdAt, partitions, files, configuration } = about
  const counted = configuration === undefined ? {} : { configuration }
  const body = { kind: KIND, format: FORMAT, product, deployment, createdAt, partitions, files, ...counted } as const
  return { ...body, seal: sealOf(body) }
}

const sealOf = (body: object): string => createHash('sha256').update(JSON.stringify(body)).digest('hex')

/** Throws Unreadable for a folder that is no finished backup, or one of another format. Looks at no other file. */
export function readManifest(dir: string): Manifest {
  const path = join(dir, MANIFEST)
  let parsed: unknown
  try {
    if (statSync(path).size > MANIFEST_BYTES_MAX) throw new Error('it is too large')
    parsed = JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new Unreadable(`${dir} is no finished backup: ${(cause as Error).message}`, { cause })
  }
  const { seal, ...body } = (parsed ?? {}) as Partial<Manifest>
  if (body.kind !== KIND) throw new Unreadable(`${path} is not the manifest of a backup`)
  if (body.format !== FORMAT) {
    throw new Unreadable(`${dir} is a backup of format ${body.format}, this build reads ${FORMAT}`)
  }
  if (seal !== sealOf(body)) throw new Unreadable(`${path} was changed since it was written`)
  if (!isManifest(body)) throw new Unreadable(`${path} is damaged`)
  return parsed as Manifest
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isText = (value: unknown, pattern: RegExp): value is string => typeof value === 'string' && pattern.test(value)

function isManifest(body: Partial<Manifest>): boolean {
  const { product, deployment, createdAt, partitions, files } = body
  if (![product, deployment, createdAt].every((text) => isText(text, /^[\x20-\x7e]{1,200}$/))) return false
  if (!Array.isArray(partitions) || partitions.length < 1 || partitions.length > PARTITIONS_MAX) return false
  const positions = (p: BackupPartition) => [p?.stateAt, p?.eventsTo, p?.decidedTo, p?.rowsBefore]
  if (!partitions.every((partition: BackupPartition) => positions(partition).every(isCount))) return false
  if (!Array.isArray(files)) return false
  const { configuration } = body
  if (configuration !== undefined && !COUNTED_NOUNS.every((noun) => isCount(configuration?.[noun]))) return false
  const expected = [...SHARED_FILES, ...partitions.flatMap((_, p) => Object.values(filesOfPartition(p)))]
  const isFile = (file: BackupFile) =>
    [file?.bytes, file?.rawBytes, file?.records].every(isCount) && isText(file.sha256, /^[0-9a-f]{64}$/)
  return files.every(isFile) && files.map(({ name }) => name).join() === expected.join()
}
