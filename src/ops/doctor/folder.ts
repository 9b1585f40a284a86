// What the doctor finds of the data folder of one machine: whether it can be used, whether this build reads it, and its master key.

import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Config } from '../../config.ts'
import { DATA_FORMAT, readFormat } from '../../lib/data-folder.ts'
import { reasonOf } from '../../lib/plain.ts'
import { readMasterKey } from '../../lib/sealed.ts'
import { masterKeyFile } from '../../role-settings.ts'
import { type Finding, findingsOf } from './finding.ts'

const { ok, note, bad } = findingsOf('present')

/** Changes nothing. */
export function findFolder(config: Config): Finding[] {
  const dir = resolve(config['data.dir'])
  let there = dir
  while (!existsSync(there)) there = dirname(there)
  try {
    accessSync(there, constants.R_OK | constants.W_OK | constants.X_OK)
    if (there !== dir) return [note('data folder', `${dir} is not there yet: the first start makes it`)]
    return [...findDeployment(dir, masterKeyFile(config)), findSpace(dir, config.freeBytesMin)]
  } catch (error) {
    const mend = 'give it to the user of the service, on a disk that can be written'
    return [bad('data folder', `${there} cannot be read and written: ${reasonOf(error)}`, mend)]
  }
}

function findDeployment(dir: string, keyFile: string): Finding[] {
  try {
    const hasDeployment = readFormat(dir, DATA_FORMAT) !== null
    const says = hasDeployment ? dir : `${dir}, without a deployment yet`
    return [ok('data folder', says), ...findKey(keyFile, hasDeployment)]
  } catch (error) {
    return [bad('data folder', reasonOf(error)), ...findKey(keyFile, false)]
  }
}

function findKey(file: string, hasDeployment: boolean): Finding[] {
  try {
    if (readMasterKey(file) !== null) return [ok('master key', `${file}: keep a copy of it elsewhere`)]
    if (!hasDeployment) return []
    const mend = 'bring the file back; where the service has never started here, its first start makes one'
    return [bad('master key', `${file} is missing: secrets that were sealed under it cannot be opened`, mend)]
  } catch (error) {
    return [bad('master key', reasonOf(error), 'bring the file back')]
  }
}

function findSpace(dir: string, bytesMin: number): Finding {
  const { bavail, bsize } = statfsSync(dir)
  const free = bavail * bsize
  const says = `${megabytes(free)} free, identifications are refused below ${megabytes(bytesMin)}`
  if (free < bytesMin) return bad('disk', says, 'free space, or move data.dir')
  return (free < 4 * bytesMin ? note : ok)('disk', says)
}

const megabytes = (bytes: number): string => `${Math.floor(bytes / 1e6)} MB`
