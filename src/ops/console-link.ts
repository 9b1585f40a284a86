// The links that a command prints for whoever has the master key: to set the console up, and for somebody who cannot sign in any more.

import { resetLink, setupLink } from '../api/console/links.ts'
import { BadSetting, type Config } from '../config.ts'
import type { RandomBytes } from '../domain/ids.ts'
import { isEmail, normalEmail } from '../domain/person.ts'
import { Unreadable } from '../lib/failures.ts'
import { openSealer, readMasterKey, type Sealer } from '../lib/sealed.ts'
import { consoleUrl, masterKeyFile } from '../role-settings.ts'

export function consoleLink(config: Config, random: RandomBytes): string {
  return `${setupLink(consoleUrl(config, config['http.port']), sealerOf(config, random))}
Once somebody is set up it is worth nothing; for a lost password: fingerpost console reset EMAIL`
}

export function consoleReset(config: Config, random: RandomBytes, nowMs: number, text: string): string {
  const email = normalEmail(text)
  if (!isEmail(email)) throw new BadSetting('console reset takes the e-mail of somebody who is set up')
  return `${resetLink(consoleUrl(config, config['http.port']), sealerOf(config, random), email, nowMs)}
It works once and for an hour, ends all sessions of ${email} and takes an authenticator away`
}

function sealerOf(config: Config, random: RandomBytes): Sealer {
  const path = masterKeyFile(config)
  const key = readMasterKey(path)
  if (key === null) throw new Unreadable(`${path} is missing: start the service once, or run this where its key is`)
  return openSealer(key, random)
}
