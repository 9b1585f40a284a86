// The commands and their options: what the arguments mean, what each command is told to do, and the pages of `fingerpost help`.

import { parseArgs } from 'node:util'
import { Told } from '../lib/failures.ts'
import { sectionNames, settingsText } from './settings-text.ts'

/** The command line asks for what there is not; the exit code is 2. */
export class Misuse extends Told {
  override readonly name = 'Misuse'
}

interface Option {
  /** What stands behind it; a flag has nothing there. */
  readonly value?: string
  readonly standard?: string
  readonly sentence: string
}

interface Command {
  /** What stands behind the name. */
  readonly operand?: string
  readonly sentence: string
  readonly more?: string
  readonly options?: Readonly<Record<string, Option>>
}

export const COMMANDS = {
  start: {
    sentence: 'Runs the server: every role in one process on embedded storage, or in a cluster the roles it is told.',
    options: {
      role: { value: 'R', sentence: 'Roles in a cluster: ingress, engine, api, dispatcher, jobs, comma-separated.' },
      'accept-lost-secrets': {
        sentence:
          'Gives up secrets that the master key does not open: webhooks wait for new ones, and storage tokens of before count as none.',
      },
    },
  },
  doctor: {
    sentence:
      'Says what this installation is: native, present, private, reachable and fresh. Ends with 1 when something must be mended.',
    more: 'It changes nothing, and asks a server that runs on this machine.',
    options: {
      backup: {
        value: 'FOLDER',
        sentence: 'A backup to tell the age of; where absent the last one that was made of this data folder.',
      },
      json: { sentence: 'Prints the findings as JSON.' },
    },
  },
  seed: {
    sentence: 'Adds a made-up history, to try things on; the same seed again adds nothing.',
    more: 'With --demo the server must run: its secret test key comes from FINGERPOST_TEST_SECRET_KEY, its address from FINGERPOST_URL.',
    options: {
      demo: {
        sentence: 'Instead, a week of visits, rules, lists and labels in the test environment, for the console.',
      },
      events: { value: 'N', standard: '100000', sentence: 'How many identifications.' },
      days: { value: 'D', standard: '30', sentence: 'Over how many days.' },
      seed: { value: 'S', standard: '1', sentence: 'Names the history: up to 64 letters, digits, _, . and -.' },
      workspace: { value: 'W', standard: 'default', sentence: 'Name or id of the workspace.' },
      env: { value: 'live|test', standard: 'live', sentence: 'The environment.' },
      until: { value: 'T', sentence: 'Its end, an RFC 3339 time; now where absent.' },
    },
  },
  backup: {
    operand: 'FOLDER',
    sentence: 'Writes everything of a deployment into a new folder, also while the server runs.',
    more: 'The passphrase comes from FINGERPOST_BACKUP_PASSPHRASE or FINGERPOST_BACKUP_PASSPHRASE_FILE.',
    options: { 'with-master-key': { sentence: 'The master key too, sealed under a passphrase.' } },
  },
  restore: {
    operand: 'FOLDER',
    sentence: 'Makes an empty deployment out of a backup.',
    more: 'The passphrase comes from FINGERPOST_BACKUP_PASSPHRASE or FINGERPOST_BACKUP_PASSPHRASE_FILE.',
  },
  'restore-drill': {
    sentence:
      'Finds out whether a backup is good: restores it into a folder of its own, starts it, counts, throws it away.',
    more: 'The copy sends nothing: no webhooks, no mail. Ends with 1 when anything is missing.',
    options: {
      backup: { value: 'FOLDER', sentence: 'The backup; where absent one is made first and thrown away as well.' },
      in: { value: 'FOLDER', sentence: 'Where the copy lies meanwhile; the folder of temporary files where absent.' },
    },
  },
  rebuild: {
    sentence: 'Restores the state after it was lost, such as Redis wiped, from the log and ClickHouse.',
  },
  'data update': {
    sentence:
      'Fetches and compiles the lists about IP addresses that the settings name, and free ones that were accepted.',
    more: 'A server that runs takes what is new by itself. What cannot be fetched or read leaves what was there.',
    options: {
      recommended: { sentence: 'Free lists by name for what the settings leave open, after printing their licences.' },
      'accept-licences': { sentence: 'Accepts those licences without being asked, for scripts.' },
      yes: { sentence: 'The same.' },
    },
  },
  'webhooks listen': {
    sentence: 'Posts what happens in the test environment to a receiver under development.',
    more: 'The secret key of the test environment comes from FINGERPOST_TEST_SECRET_KEY.',
    options: {
      forward: { value: 'URL', sentence: 'Address of the receiver; it must be given.' },
      url: { value: 'SERVICE', sentence: 'Address of the service; FINGERPOST_URL or this machine where absent.' },
      shape: { value: 'A|B', standard: 'B', sentence: 'The form of the bodies.' },
      secret: { value: 'S', sentence: 'Signs the deliveries; one is made where absent.' },
    },
  },
  demo: { sentence: 'Prints a link that opens the demo page of the running server once.' },
  'corrections export': { sentence: 'Prints pairs of visitors that were merged or split by hand, as lines of JSON.' },
  'console link': { sentence: 'Prints the link that sets the console up.' },
  'console reset': {
    operand: 'EMAIL',
    sentence: 'Prints a link to choose a new password, for somebody who cannot sign in.',
  },
  keygen: {
    sentence: 'Prints a well-formed set of four keys.',
    options: { json: { sentence: 'Prints them as JSON.' } },
  },
} as const satisfies Readonly<Record<string, Command>>

export type CommandName = keyof typeof COMMANDS
const commands: Readonly<Record<string, Command>> = COMMANDS

/** The options of every command that has them: the same name is of the same kind everywhere. */
const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
  ...Object.fromEntries(
    Object.values(commands).flatMap(({ options = {} }) =>
      Object.entries(options).map(([name, { value }]) => [
        name,
        { type: value === undefined ? ('boolean' as const) : ('string' as const) },
      ]),
    ),
  ),
} as const

/** What the command line asks for. */
export type ParsedCommandLine =
  | { readonly kind: 'version' }
  | { readonly kind: 'help'; readonly text: string }
  | {
      readonly kind: 'run'
      readonly command: CommandName
      readonly operand: string
      /** The text of an option, its default where it has one; empty where it is absent. */
      readonly text: (option: string) => string
      readonly has: (option: string) => boolean
      /** Names of the options that were given. */
      readonly given: readonly string[]
    }

/** Throws Misuse. */
export function readArguments(args: readonly string[]): ParsedCommandLine {
  const { values, positionals } = parsed(args)
  if (positionals.length === 0) {
    if (values.version === true) return { kind: 'version' }
    const [option] = Object.keys(values).filter((name) => name !== 'help')
    if (option !== undefined) throw new Misuse(`--${option} belongs to a command; see fingerpost help`)
    return { kind: 'help', text: overview() }
  }
  if (positionals[0] === 'help') return { kind: 'help', text: helpOn(positionals.slice(1)) }
  const name = nameIn(positionals)
  const { operand, options = {} } = commands[name] as Command
  const rest = positionals.slice(name.split(' ').length)
  if (values.help === true) return { kind: 'help', text: pageOf(name) }
  if (values.version === true) return { kind: 'version' }
  const given = rest.slice(operand === undefined ? 0 : 1)
  if (given.length > 0) throw new Misuse(`${name} takes no ${given[0]}; see fingerpost help ${name}`)
  if (operand !== undefined && rest.length === 0) {
    throw new Misuse(`${name} needs ${operand}; see fingerpost help ${name}`)
  }
  const foreign = Object.keys(values).find((option) => !Object.hasOwn(options, option))
  if (foreign !== undefined) throw new Misuse(`${name} has no option --${foreign}; see fingerpost help ${name}`)
  return {
    kind: 'run',
    command: name,
    operand: rest[0] ?? '',
    text: (option) => String(values[option] ?? options[option]?.standard ?? ''),
    has: (option) => values[option] === true,
    given: Object.keys(values),
  }
}

function parsed(args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS })
    return { values: values as Readonly<Record<string, string | boolean | undefined>>, positionals }
  } catch (error) {
    const [problem = ''] = (error as Error).message.split(/\. |\n/)
    throw new Misuse(`${problem}; see fingerpost help`)
  }
}

function nameIn(words: readonly string[]): CommandName {
  const two = words.slice(0, 2).join(' ')
  const name = [two, words[0] ?? ''].find((candidate) => Object.hasOwn(COMMANDS, candidate))
  if (name !== undefined) return name as CommandName
  const begun = Object.keys(COMMANDS).find((candidate) => candidate.startsWith(`${words[0]} `))
  const hint = begun === undefined ? 'see fingerpost help' : `there is fingerpost ${begun}`
  throw new Misuse(`unknown command: ${two}; ${hint}`)
}

function helpOn(words: readonly string[]): string {
  if (words.length === 0) return overview()
  if (words[0] !== 'settings') {
    const name = nameIn(words)
    const [more] = words.slice(name.split(' ').length)
    if (more !== undefined) throw new Misuse(`unknown command: ${words.join(' ')}; see fingerpost help`)
    return pageOf(name)
  }
  const [, section, more] = words
  if (more !== undefined || (section !== undefined && !sectionNames().includes(section))) {
    throw new Misuse(`no section of settings: ${words.slice(1).join(' ')}; there are ${sectionNames().join(', ')}`)
  }
  return settingsText(section)
}

const COLUMN = 24
const entry = (left: string, text: string): string =>
  left.length < COLUMN ? `  ${left.padEnd(COLUMN)}${text}` : `  ${left}\n  ${' '.repeat(COLUMN)}${text}`

const usageOf = (name: string): string => {
  const { operand, options = {} } = commands[name] as Command
  const parts = Object.entries(options).map(([option, { value }]) => ` [--${option}${value ? ` ${value}` : ''}]`)
  return `fingerpost ${name}${operand === undefined ? '' : ` ${operand}`}${parts.join('')}`
}

function overview(): string {
  const lines = Object.entries(commands).map(([name, { operand, sentence }]) =>
    entry(operand === undefined ? name : `${name} ${operand}`, sentence),
  )
  return [
    'usage: fingerpost COMMAND [OPTIONS]',
    '',
    ...lines,
    '',
    entry('help COMMAND', 'Tells of a command: its options and their defaults.'),
    entry('help settings', 'Lists every setting by section; help settings SECTION lists one section.'),
    entry('--version', 'Prints the version.'),
    '',
    'Settings come from the environment, or from the JSON file FINGERPOST_CONFIG names.',
  ].join('\n')
}

function pageOf(name: CommandName): string {
  const { sentence, more, options = {} } = commands[name] as Command
  const lines = Object.entries(options).map(([option, { value, standard, sentence: says }]) =>
    entry(`--${option}${value ? ` ${value}` : ''}`, standard === undefined ? says : `${says} Default ${standard}.`),
  )
  return [
    `usage: ${usageOf(name)}`,
    '',
    sentence,
    ...(more === undefined ? [] : [more]),
    ...(lines.length === 0 ? [] : ['', ...lines]),
  ].join('\n')
}
