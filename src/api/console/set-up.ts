// The first admin from a file, for deployments that nobody sits in front of.

import { readFileSync } from 'node:fs'
import { DEFAULT_WORKSPACE } from '../../control/bootstrap.ts'
import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError } from '../../domain/errors.ts'
import { makeObjectId, type RandomBytes } from '../../domain/ids.ts'
import { PEOPLE_PER_WORKSPACE_MAX } from '../../domain/person.ts'
import { type Static, strict, Type } from '../../domain/schema.ts'
import type { Kv } from '../../kv/kv.ts'
import { Told } from '../../lib/failures.ts'
import type { Sealer } from '../../lib/sealed.ts'
import { validator } from '../../lib/validate.ts'
import { isSetUp } from '../../records/people.ts'
import { email, newPassword, personName, readEmail } from './entrance.ts'
import { setupLink } from './links.ts'
import { openPasswords } from './passwords.ts'

/** The sentence names the file and what is wrong with it. */
class BadSetupFile extends Told {
  override readonly name = 'BadSetupFile'
}

const SetupFile = Type.Object({ email, name: personName, password: newPassword }, strict)
const check: (data: unknown) => asserts data is Static<typeof SetupFile> = validator(SetupFile)

export interface SetUpNeeds {
  readonly kv: Pick<Kv, 'scan'>
  readonly submit: Submitter['submit']
  readonly random: RandomBytes
}

/** null: somebody is set up. */
export const openSetupLink = async (
  kv: Pick<Kv, 'scan'>,
  sealer: Pick<Sealer, 'sign'>,
  address: string,
): Promise<string | null> => ((await isSetUp(kv)) ? null : setupLink(address, sealer))

/** Does nothing without a file, and where somebody is set up already. Throws what a person can act upon. */
export async function setUpFromFile(path: string, needs: SetUpNeeds): Promise<void> {
  const { kv, submit, random } = needs
  if (path === '' || (await isSetUp(kv))) return
  const wanted = readSetupFile(path)
  const data = {
    ...({ id: makeObjectId('per', random), email: wanted.email, name: wanted.name, role: 'admin' } as const),
    password: await openPasswords(random).hash(wanted.password),
    ...{ invitation: null, peopleMax: PEOPLE_PER_WORKSPACE_MAX, isFirst: true },
  }
  const outcome = await submit({
    type: 'person.create',
    workspace: DEFAULT_WORKSPACE,
    env: null,
    actor: 'bootstrap',
    data,
  })
  // Another process may have been faster.
  if (!outcome.ok && outcome.code !== 'conflict') accepted(outcome)
}

function readSetupFile(path: string): Static<typeof SetupFile> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    check(value)
    return { ...value, email: readEmail(value.email) }
  } catch (error) {
    const why = error instanceof ApiError ? `${error.detail.field}: ${error.message}` : (error as Error).message
    throw new BadSetupFile(`console.setupFile ${path}: ${why}`)
  }
}
