// Tables as files of one folder, replaced whole: a reader finds the old one or the new one, and the one before is kept.

import { type FileHandle, link, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../lib/make-folder.ts'
import { type CompileInput, compileTable } from './compile.ts'
import { BadSource, type SourceName, type SourcePlace } from './sources.ts'
import { type AddressTable, openTable, type TableInput, verifyTable } from './table.ts'

export const tablePath = (dir: string, source: SourceName): string => join(dir, `${source}.table`)
export const previousPath = (dir: string, source: SourceName): string => join(dir, `${source}.previous`)

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

/** What tells one version of a file from another, or null when there is none. */
export async function versionOf(path: string): Promise<string | null> {
  try {
    const { ino, size, mtimeMs } = await stat(path)
    return `${path} ${ino} ${size} ${mtimeMs}`
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** The table in a file, or null when there is no file. Throws BadSource when it is damaged. */
export async function loadTable(path: string, source: SourceName): Promise<AddressTable | null> {
  const image = await readShared(path)
  if (image === null) return null
  verifyTable(image)
  const table = openTable(image)
  if (table.meta.source !== source) throw new BadSource(`${path} holds ${table.meta.source}, not ${source}`)
  return table
}

/** A file, read into shared memory without a copy; null when there is none. */
async function readShared(path: string): Promise<SharedArrayBuffer | null> {
  let file: FileHandle
  try {
    file = await open(path)
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
  try {
    const { size } = await file.stat()
    const image = new SharedArrayBuffer(size)
    const bytes = Buffer.from(image)
    for (let at = 0; at < size; ) {
      const { bytesRead } = await file.read(bytes, at, size - at, at)
      // What a shorter file leaves at zero fails the digest.
      if (bytesRead === 0) break
      at += bytesRead
    }
    return image
  } finally {
    await file.close()
  }
}

/** Puts a table in place of the one that is there. */
export async function storeTable(dir: string, source: SourceName, image: SharedArrayBuffer): Promise<void> {
  makeFolder(dir)
  const path = tablePath(dir, source)
  const draft = `${path}.${process.pid}`
  await writeSourceDurably(draft, Buffer.from(image))
  const kept = `${previousPath(dir, source)}.${process.pid}`
  await rm(kept, { force: true })
  try {
    await link(path, kept)
    await rename(kept, previousPath(dir, source))
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  await rename(draft, path)
}

export async function writeSourceDurably(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** A file as an input of a table, its content to be read; null when it is gone. Throws BadSource when it is too large. */
async function describeFile(place: SourcePlace, bytesMax: number): Promise<TableInput | null> {
  try {
    const { size, mtimeMs } = await stat(place.location)
    if (size > bytesMax) throw new BadSource(`${place.location}: ${size} bytes are more than ip.downloadBytesMax`)
    return { ...place, bytes: size, changedAt: Math.round(mtimeMs), confirmedAt: null, etag: null, digest: null }
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** The table of a source whose files are read in place; null when none of them is there. */
export async function compileFiles(
  source: SourceName,
  places: readonly SourcePlace[],
  options: { readonly builtAt: number; readonly bytesMax: number },
  stored: AddressTable | null,
): Promise<SharedArrayBuffer | null> {
  const described = await Promise.all(places.map((place) => describeFile(place, options.bytesMax)))
  const inputs = described.filter((input) => input !== null)
  if (inputs.length === 0) return null
  const gone = places.find((_, i) => described[i] === null)
  if (gone !== undefined) throw new BadSource(`${gone.location} is missing`)
  if (stored !== null && JSON.stringify(stored.meta.inputs) === JSON.stringify(inputs)) return stored.image
  const read: CompileInput[] = []
  for (const input of inputs) read.push({ ...input, content: await readFile(input.location) })
  return compileTable(source, read, options)
}
