// Chooses the backend of the log on this machine; the one on servers is opened by ports-cluster.ts, which shares its connection.
import { join } from 'node:path'
import { type LmdbLogConfig, openLmdbLog } from './lmdb.ts'
import type { Log } from './log.ts'

export type LogConfig = { readonly backend: 'lmdb'; readonly dataDir: string } & Omit<LmdbLogConfig, 'path'>

/** Throws Unreadable when the stored data is damaged, Unavailable when the backend cannot be reached. */
export async function openLog(config: LogConfig): Promise<Log> {
  const { backend, dataDir, ...rest } = config
  switch (backend) {
    case 'lmdb':
      return openLmdbLog({ ...rest, path: join(dataDir, 'log') })
  }
}
