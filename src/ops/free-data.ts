// Consent to the licences of free data about addresses: what is printed before anything is fetched, and what was accepted, which
// lies beside the data.

import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FREE_DATA, type FreeData } from '../ipintel/recommended.ts'
import { Told } from '../lib/failures.ts'
import { makeFolder } from '../lib/make-folder.ts'

const acceptedPath = (dir: string): string => join(dir, 'accepted-licences.json')

interface Accepted {
  readonly acceptedAt: string
  readonly licences: readonly Pick<FreeData, 'name' | 'licence' | 'terms'>[]
}

const isSame = (a: Pick<FreeData, 'name' | 'licence'>, b: Pick<FreeData, 'name' | 'licence'>): boolean =>
  a.name === b.name && a.licence === b.licence

/** What was accepted of it and still has the licence it had then. What cannot be read counts as not accepted. */
export function acceptedFreeData(dir: string, all: readonly FreeData[] = FREE_DATA): FreeData[] {
  try {
    const { licences } = JSON.parse(readFileSync(acceptedPath(dir), 'utf8')) as Accepted
    return all.filter((data) => licences.some((licence) => isSame(data, licence)))
  } catch {
    return []
  }
}

function keepAccepted(dir: string, all: readonly FreeData[], nowMs: number): void {
  const licences = all.map(({ name, licence, terms }) => ({ name, licence, terms }))
  const accepted: Accepted = { acceptedAt: new Date(nowMs).toISOString(), licences }
  makeFolder(dir)
  const draft = `${acceptedPath(dir)}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(accepted, null, 2)}\n`, { mode: 0o600 })
  renameSync(draft, acceptedPath(dir))
}

/** Each with its addresses, its licence and what that asks. */
export const licencesText = (all: readonly FreeData[]): string =>
  [
    'Free data about addresses, each under the licence of its publisher:',
    ...all.map(({ name, tells, licence, terms, asks, places }) =>
      [
        `  ${name}: ${tells}`,
        ...[...new Set(places.flatMap(({ urls }) => urls.map(({ location }) => location)))].map((url) => `    ${url}`),
        `    licence: ${licence}; asks ${asks}`,
        `    ${terms}`,
      ].join('\n'),
    ),
  ].join('\n\n')

export interface ConsentNeeds {
  readonly dir: string
  readonly nowMs: number
  /** The licences were accepted on the command line. */
  readonly accepts: boolean
  /** Asks a person; null where none is there. */
  readonly ask: ((question: string) => Promise<boolean>) | null
  readonly say: (text: string) => void
}

/** Nobody said whether the licences are accepted. */
class NotAccepted extends Told {
  override readonly name = 'NotAccepted'
}

/** Prints the licences and finds out whether they are accepted; what was accepted before is not asked again. Throws NotAccepted. */
export async function askConsent(needs: ConsentNeeds, all: readonly FreeData[] = FREE_DATA): Promise<boolean> {
  const { dir, ask } = needs
  needs.say(`${licencesText(all)}\n`)
  if (!needs.accepts && acceptedFreeData(dir, all).length === all.length) return true
  if (!needs.accepts && ask === null) {
    throw new NotAccepted('nothing was fetched: run it on a terminal, or accept these licences with --accept-licences')
  }
  if (!needs.accepts && ask !== null && !(await ask('Fetch them and accept their licences? [y/N] '))) return false
  keepAccepted(dir, all, needs.nowMs)
  return true
}
