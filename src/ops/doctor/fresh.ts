// What the doctor finds about ages: data about addresses, the last backup, the certificate.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Config } from '../../config.ts'
import { withFreeData } from '../../ipintel/recommended.ts'
import type { SourcePlaces } from '../../ipintel/sources.ts'
import { loadTable, tablePath } from '../../ipintel/store.ts'
import { FETCH_FREE_DATA, inWords, undeterminedWithout } from '../../ipintel/undetermined.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { reasonOf } from '../../lib/plain.ts'
import { ipSettings } from '../../role-settings.ts'
import { readManifest } from '../backup-format.ts'
import { lastBackup } from '../backup-mark.ts'
import { acceptedFreeData } from '../free-data.ts'
import { type Finding, findingsOf } from './finding.ts'

/** Exits of Tor change by the hour, other lists are published weekly or monthly. */
const TOR_DAYS_MAX = 2
const LISTS_DAYS_MAX = 35
const BACKUP_DAYS_MAX = 7
const CERTIFICATE_DAYS_MIN = 14
const { ok, note, bad } = findingsOf('fresh')

/** `backupDir`: a backup to be looked at, empty where none is named. */
export async function findFresh(config: Config, nowMs: number, backupDir: string): Promise<Finding[]> {
  const { dir, places } = ipSettings(config)
  const used = withFreeData(places, acceptedFreeData(dir))
  const ages = await Promise.all(used.map((place) => ageOf(place, dir, nowMs)))
  const missing = undeterminedWithout((source) => used.some((place) => place.source === source))
  const without = note(
    'IP data',
    `${used.length === 0 ? 'there is none' : 'some is not there'}; undetermined: ${inWords(missing)}`,
    FETCH_FREE_DATA,
  )
  return [
    ...ages,
    ...(missing.length === 0 ? [] : [without]),
    ageOfBackup(config, nowMs, backupDir),
    ...ageOfCertificate(config['tls.certFile'], nowMs),
  ]
}

async function ageOf({ source, files }: SourcePlaces, dir: string, nowMs: number): Promise<Finding> {
  const name = `IP data, ${source}`
  const update = 'fingerpost data update'
  try {
    const at = files.length > 0 ? await oldestOf(files) : await dataAtOf(dir, source)
    if (at === null) return bad(name, 'it was never fetched', update)
    const days = (nowMs - at) / DAY_MS
    const isOld = days > (source === 'tor' ? TOR_DAYS_MAX : LISTS_DAYS_MAX)
    return isOld ? note(name, daysOld(days), files.length > 0 ? undefined : update) : ok(name, daysOld(days))
  } catch (error) {
    return bad(name, reasonOf(error), files.length > 0 ? undefined : update)
  }
}

async function oldestOf(files: SourcePlaces['files']): Promise<number> {
  const times = await Promise.all(files.map(async ({ location }) => (await stat(location)).mtimeMs))
  return Math.min(...times)
}

async function dataAtOf(dir: string, source: SourcePlaces['source']): Promise<number | null> {
  const table = await loadTable(tablePath(dir, source), source)
  return table === null ? null : (table.meta.dataAt ?? table.meta.builtAt)
}

const daysOld = (days: number): string => `${Math.max(0, days).toFixed(1)} days old`

function ageOfBackup(config: Config, nowMs: number, backupDir: string): Finding {
  const make = 'fingerpost backup FOLDER'
  try {
    const at = backupDir === '' ? lastBackup(config['data.dir']) : readManifest(backupDir).createdAt
    if (at === null) {
      return config.isCluster
        ? note('backup', 'this machine knows of none', 'name one with --backup FOLDER')
        : note('backup', 'there is none that was made here', make)
    }
    const days = (nowMs - Date.parse(at)) / DAY_MS
    return days > BACKUP_DAYS_MAX ? note('backup', daysOld(days), make) : ok('backup', daysOld(days))
  } catch (error) {
    return bad('backup', reasonOf(error))
  }
}

function ageOfCertificate(file: string, nowMs: number): Finding[] {
  if (file === '') return []
  try {
    const days = (Date.parse(new X509Certificate(readFileSync(file)).validTo) - nowMs) / DAY_MS
    if (days < 0) return [bad('TLS certificate', `it ended ${(-days).toFixed(1)} days ago`, 'renew it')]
    const says = `valid for ${days.toFixed(1)} days`
    return [days < CERTIFICATE_DAYS_MIN ? note('TLS certificate', says, 'renew it') : ok('TLS certificate', says)]
  } catch {
    // What is there is looked at elsewhere: a file that holds no certificate has no age.
    return []
  }
}
