// Loading one source as a server does: its files compiled, or the table that `fingerpost data update` stored.

import { BadSource, type SourceName, type SourcePlace } from './sources.ts'
import { compileFiles, loadTable, tablePath } from './store.ts'

export interface LoadJob {
  readonly source: SourceName
  /** Folder of stored tables. */
  readonly dir: string
  /** Read in place; without any, the stored table is taken as it is. */
  readonly files: readonly SourcePlace[]
  readonly bytesMax: number
}

export type LoadedSource =
  /** null: there is no such data. */
  | { readonly source: SourceName; readonly image: SharedArrayBuffer | null }
  /** `isFinal`: the same bytes will fail again. */
  | { readonly source: SourceName; readonly failure: string; readonly isFinal: boolean }

/** Never rejects. */
export async function loadSource({ source, dir, files, bytesMax }: LoadJob, nowMs: number): Promise<LoadedSource> {
  try {
    if (files.length === 0) return { source, image: (await loadTable(tablePath(dir, source), source))?.image ?? null }
    // One that is damaged is no reason not to read the files it was made of.
    const stored = await loadTable(tablePath(dir, source), source).catch(() => null)
    return { source, image: await compileFiles(source, files, { builtAt: nowMs, bytesMax }, stored) }
  } catch (error) {
    return { source, failure: (error as Error).message, isFinal: error instanceof BadSource }
  }
}
