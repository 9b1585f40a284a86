// The units of systemd: systemd's own linter accepts them, they run the program as `npm start` does, and what they forbid is what it can
// do without. No machine with a running systemd was at hand.

import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../src/config.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'
import { filesUnder, read } from './deploy.ts'

t.teardown(cleanUp)

const FOLDER = 'deploy/systemd'
const UNITS = filesUnder(FOLDER).filter((file) => /\.(service|timer)$/.test(file))

/** `Section.Member` → its values. Throws for a line that is none of a unit. */
function readUnit(file: string): Map<string, string[]> {
  const found = new Map<string, string[]>()
  let section = ''
  for (const line of read(file).split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const heading = /^\[(\w+)\]$/.exec(line)?.[1]
    const [, member, value = ''] = /^([A-Z]\w*)=(.*)$/.exec(line) ?? []
    if (heading !== undefined) section = heading
    else if (member === undefined || section === '') throw new Error(`${file}: ${line}`)
    else found.set(`${section}.${member}`, [...(found.get(`${section}.${member}`) ?? []), value])
  }
  return found
}

const service = readUnit(`${FOLDER}/fingerpost.service`)
const backup = readUnit(`${FOLDER}/fingerpost-backup.service`)
const one = (unit: Map<string, string[]>, member: string): string => unit.get(member)?.join(' ') ?? ''

/** null where there is no systemd. */
function analyze(...args: string[]): { code: number | null; said: string } | null {
  const { status, stdout, stderr, error } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
  return error === undefined ? { code: status, said: stdout + stderr } : null
}

t.test('systemd understands every line, and finds the server confined', async (t) => {
  t.equal(UNITS.length, 3)
  const folder = temporaryFolder()
  mkdirSync(folder, { recursive: true })
  const copies = UNITS.map((file) => {
    const copy = join(folder, file.slice(FOLDER.length + 1))
    // What is installed is not here.
    writeFileSync(copy, read(file).replace(/^ExecStart=\S+/m, 'ExecStart=/bin/sh'))
    return copy
  })
  const linted = analyze('verify', ...copies)
  if (linted === null) return t.comment('no systemd-analyze here: only our own reader has seen the units')
  t.same(linted, { code: 0, said: '' })
  const security = analyze('security', '--offline=true', '--threshold=20', join(folder, 'fingerpost.service'))
  t.equal(security?.code, 0, security?.said ?? '')
})

t.test('the server runs as npm start runs it, with settings that it accepts', async (t) => {
  const { scripts, version } = JSON.parse(read('package.json')) as { scripts: { start: string }; version: string }
  const [, flags] = /exec node (.*) build\/server\/main\.js start$/.exec(scripts.start) ?? []
  const main = '/opt/fingerpost/node_modules/fingerpost/build/server/main.js'
  t.equal(one(service, 'Service.ExecStart'), `/usr/bin/node ${flags} ${main} start`)
  t.match(one(backup, 'Service.ExecStart'), main)
  for (const unit of [service, backup]) {
    const variables = one(unit, 'Service.Environment')
      .split(' ')
      .map((pair) => pair.split('='))
    const config = readConfig(Object.fromEntries(variables))
    const [state] = one(unit, 'Service.StateDirectory').split(' ')
    t.ok(config['data.dir'].startsWith(`/var/lib/${state}/`), 'it may write there')
    t.equal(one(unit, 'Service.User'), 'fingerpost')
  }
  t.match(read(`${FOLDER}/fingerpost.conf`), /^u fingerpost /m, 'somebody makes the user')
  t.match(read(`${FOLDER}/fingerpost.service`), `fingerpost-${version}.tgz`)
})

t.test('a stop has longer than a drain takes, and the process enough open files', async (t) => {
  t.equal(one(service, 'Service.KillSignal'), 'SIGTERM')
  const compose = Number(/stop_grace_period: (\d+)s/.exec(read('deploy/compose.single.yml'))?.[1])
  t.ok(Number(one(service, 'Service.TimeoutStopSec')) >= compose)
  t.ok(Number(one(service, 'Service.LimitNOFILE')) >= 65_536)
})

t.test('the server is confined as far as code that is compiled while it runs permits', async (t) => {
  for (const [member, value] of Object.entries({
    ProtectSystem: 'strict',
    NoNewPrivileges: 'yes',
    PrivateTmp: 'yes',
    CapabilityBoundingSet: '',
  })) {
    t.same(service.get(`Service.${member}`), [value], member)
  }
  for (const unit of [service, backup]) t.notOk(unit.has('Service.MemoryDenyWriteExecute'), 'V8 could not compile')
})
