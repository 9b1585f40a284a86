// `fingerpost data update`: refreshes the data about addresses. Each source is fetched or read, compiled, compared with what
// it replaces, and only then put in its place, where running servers find it; one that fails leaves everything as it was.

import { createHash } from 'node:crypto'
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { type CompileInput, compileTable } from '../ipintel/compile.ts'
import { BadSource, type SourceName, type SourcePlace, type SourcePlaces } from '../ipintel/sources.ts'
import { compileFiles, loadTable, storeTable, tablePath, writeSourceDurably } from '../ipintel/store.ts'
import { type AddressTable, openTable, type TableInput } from '../ipintel/table.ts'
import type { Clock } from '../lib/clock.ts'
import { Told } from '../lib/failures.ts'
import { makeFolder } from '../lib/make-folder.ts'
import { download } from './download.ts'
import type { Progress } from './progress.ts'

export interface DataUpdateNeeds {
  readonly dir: string
  readonly places: readonly SourcePlaces[]
  readonly bytesMax: number
  readonly clock: Clock
  readonly progress: Progress
}

/** Some sources could not be refreshed: the sentence names them. */
class UpdateFailed extends Told {
  override readonly name = 'UpdateFailed'
}

export interface DataUpdated {
  readonly updated: readonly SourceName[]
  readonly unchanged: readonly SourceName[]
}

const DOWNLOAD_MS_MAX = 900_000
/** A source of this many entries does not lose half of them overnight: half a file came, or another one. */
const SHRINK = { entriesMin: 1_000, share: 0.5 }

/** Refreshes every source that is configured; throws UpdateFailed after all have been tried. */
export async function dataUpdate(needs: DataUpdateNeeds): Promise<DataUpdated> {
  const updated: SourceName[] = []
  const unchanged: SourceName[] = []
  const failures: string[] = []
  const fresh: Fresh = new Map()
  for (const places of needs.places) {
    const { source, files, urls } = places
    if (files.length + urls.length === 0) continue
    needs.progress.begin(source, null)
    try {
      const table = await updateSource(needs, places, fresh)
      if (table === null) unchanged.push(source)
      else updated.push(source)
      needs.progress.end(table === null ? 'not changed' : describe(table, needs.clock.now()))
    } catch (error) {
      failures.push(`${source}: ${(error as Error).message}`)
      needs.progress.end(`failed: ${(error as Error).message}`)
    }
  }
  if (failures.length > 0) throw new UpdateFailed(`not refreshed, what was there stays: ${failures.join('; ')}`)
  if (updated.length + unchanged.length === 0) {
    throw new UpdateFailed(
      'no source is configured: fingerpost data update --recommended fetches free ones, or set FINGERPOST_IP_GEO_URL and its likes (fingerpost help settings ip)',
    )
  }
  return { updated, unchanged }
}

function describe({ image, meta }: AddressTable, nowMs: number): string {
  const days = meta.dataAt === null ? null : Math.max(0, (nowMs - meta.dataAt) / 86_400_000)
  const age = days === null ? 'of unknown age' : `${days.toFixed(1)} days old`
  return `${meta.entries} entries, ${(image.byteLength / 1e6).toFixed(1)} MB, ${age}`
}

/** The new table of a source, stored; null when nothing has changed. */
async function updateSource(needs: DataUpdateNeeds, places: SourcePlaces, fresh: Fresh): Promise<AddressTable | null> {
  const { dir, clock } = needs
  const { source, files, urls, behind } = places
  const bytesMax = Math.min(needs.bytesMax, places.bytesMax ?? needs.bytesMax)
  const options = { builtAt: clock.now(), bytesMax }
  if (behind !== undefined && (await loadTable(tablePath(dir, behind), behind).catch(() => null)) === null) {
    throw new BadSource(`it is not taken without data of ${behind}, some of which it holds as its own`)
  }
  // A damaged table is replaced like an old one.
  const stored = await loadTable(tablePath(dir, source), source).catch(() => null)
  if (files.length > 0) {
    const image = await compileFiles(source, files, options, stored)
    if (image === null) throw new BadSource(`${files.map(({ location }) => location).join(', ')}: no such file`)
    return image === stored?.image ? null : replace(needs, places, image, stored)
  }
  const fetched: Fetched[] = []
  for (const place of urls) fetched.push(await fetchInput({ ...needs, bytesMax }, source, place, stored, fresh))
  const inputs = fetched.map(({ input }) => input)
  if (stored !== null && isSame(stored.meta.inputs, inputs)) return null
  const table = await replace(needs, places, compileTable(source, inputs, options), stored)
  for (const { input, isNew } of fetched) if (isNew) await keep(needs, source, input)
  return table
}

/** Files without a date of their own are as new as they were last confirmed, so for them every run makes a difference. */
function isSame(before: readonly TableInput[], now: readonly TableInput[]): boolean {
  const facts = (inputs: readonly TableInput[]) =>
    JSON.stringify(
      inputs.map(({ name, location, digest, changedAt, etag }) => [name, location, digest, changedAt, etag]),
    )
  return now.every(({ changedAt }) => changedAt !== null) && facts(before) === facts(now)
}

async function replace(
  { dir }: DataUpdateNeeds,
  { source, urls, entriesMin = 0 }: SourcePlaces,
  image: SharedArrayBuffer,
  stored: AddressTable | null,
): Promise<AddressTable> {
  const table = openTable(image)
  if (table.meta.entries < entriesMin) {
    const places = urls.map(({ location }) => location).join(', ')
    throw new BadSource(`${places}: ${table.meta.entries} entries, where at least ${entriesMin} are expected`)
  }
  const before = stored?.meta.entries ?? 0
  if (before >= SHRINK.entriesMin && table.meta.entries < SHRINK.share * before) {
    const remove = `if that is right, remove ${tablePath(dir, source)} and run again`
    throw new BadSource(`${table.meta.entries} entries are left of ${before}: ${remove}`)
  }
  await storeTable(dir, source, image)
  return table
}

interface Fetched {
  readonly input: CompileInput
  readonly isNew: boolean
}

/** What this run has fetched: one file may be good for several sources. */
type Fresh = Map<string, CompileInput>

const digestOf = (content: Uint8Array | string): string => createHash('sha256').update(content).digest('hex')
const keptPath = (dir: string, source: SourceName, location: string): string =>
  join(dir, 'fetched', `${source}-${digestOf(location).slice(0, 16)}`)

/** Of several files that make a source one may change alone: what was fetched is kept. */
async function keep({ dir }: DataUpdateNeeds, source: SourceName, { location, content }: CompileInput): Promise<void> {
  makeFolder(join(dir, 'fetched'))
  const path = keptPath(dir, source, location)
  const draft = `${path}.${process.pid}`
  await writeSourceDurably(draft, content)
  await rename(draft, path)
}

/** A file of a source: as it is there now, or as it was kept when the server says that it has not changed. */
async function fetchInput(
  { dir, bytesMax, clock, progress }: DataUpdateNeeds,
  source: SourceName,
  { name, location }: SourcePlace,
  stored: AddressTable | null,
  fresh: Fresh,
): Promise<Fetched> {
  const again = fresh.get(location)
  if (again !== undefined) return { input: { ...again, name }, isNew: true }
  const known = stored?.meta.inputs.find((input) => input.location === location) ?? null
  const content = known === null ? null : await readFile(keptPath(dir, source, location)).catch(() => null)
  const kept = known !== null && content !== null && digestOf(content) === known.digest ? { ...known, content } : null
  const found = await download(location, {
    etag: kept?.etag ?? null,
    lastModified: kept?.changedAt ?? null,
    bytesMax,
    msMax: DOWNLOAD_MS_MAX,
    onBytes: (bytes) => progress.advance(bytes),
  }).catch((error: Error) => {
    throw new BadSource(`${location}: ${error.message}`)
  })
  const confirmedAt = clock.now()
  if (found.content === null) {
    if (kept === null) throw new BadSource(`${location}: the server says it has not changed, and it was never fetched`)
    const { etag, lastModified } = found
    return { input: { ...kept, name, confirmedAt, etag, changedAt: lastModified }, isNew: false }
  }
  const input = {
    name,
    location,
    bytes: found.content.length,
    changedAt: found.lastModified,
    confirmedAt,
    etag: found.etag,
    digest: digestOf(found.content),
    content: found.content,
  }
  fresh.set(location, input)
  return { input, isNew: true }
}
