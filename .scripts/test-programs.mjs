// Programs that tests drive: found where they are, installed where that can be done, named where it cannot.
import { spawnSync } from 'node:child_process'
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, rmSync, symlinkSync } from 'node:fs'
import { delimiter, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const INSTALL_LOG = join(ROOT, 'build/install.log')

// `env` names the variable that points at a copy elsewhere, `uses` how a built test shows that it needs the program. Debian
// starts a service with some of these packages; tests start their own on free ports and never speak to it.
const PROGRAMS = [
  {
    command: 'chromium',
    packages: ['chromium'],
    env: 'CHROMIUM',
    needed: 'the browser tests',
    uses: /test\/browser\//,
  },
  {
    command: 'firefox-esr',
    packages: ['firefox-esr'],
    env: 'FIREFOX',
    needed: 'the browser tests',
    uses: /test\/browser\//,
  },
  { command: 'Xvfb', packages: ['xvfb'], env: 'XVFB', needed: 'the browser tests', uses: /test\/browser\// },
  { command: 'nats-server', packages: ['nats-server'], env: 'NATS_SERVER', needed: 'the cluster tests', uses: /./ },
  { command: 'redis-server', packages: ['redis-server'], env: 'REDIS_SERVER', needed: 'the cluster tests', uses: /./ },
  {
    command: 'prometheus',
    packages: ['prometheus'],
    env: 'PROMETHEUS',
    needed: 'the tests of metrics and alerts',
    uses: /test\/watch\//,
  },
  {
    command: 'promtool',
    packages: ['prometheus'],
    env: 'PROMTOOL',
    needed: 'the tests of metrics and alerts',
    uses: /test\/watch\//,
  },
]
/** Where Debian puts servers, and where users other than root do not look. */
const SERVER_FOLDERS = ['/usr/local/sbin', '/usr/sbin']
/** Searched first by whatever starts a program by its name. */
const LINKS = join(ROOT, 'build/programs')

/** Where `program` is, or null. */
function find({ command, env }) {
  const places = [...(process.env.PATH ?? '').split(delimiter), ...SERVER_FOLDERS].map((folder) =>
    join(folder, command),
  )
  if (env && process.env[env]) places.unshift(process.env[env])
  for (const place of places) {
    try {
      accessSync(place, constants.X_OK)
      return place
    } catch {
      // Looked for in the next folder.
    }
  }
  return null
}

/** Makes the programs that `files` need available by their names. Returns one sentence for each that could not be. */
export function provide(files) {
  const programs = PROGRAMS.filter(({ uses }) => files.some((file) => uses.test(file)))
  const missing = programs.filter((program) => !find(program))
  if (missing.length > 0) install(missing.flatMap((program) => program.packages))
  expose(programs)
  return programs
    .filter((program) => !find(program))
    .map(
      ({ command, packages, env, needed }) =>
        `${command} is missing; ${needed} need it. On Debian or Ubuntu: apt-get install ${packages.join(' ')}.` +
        `${env ? ` Or set ${env} to the path of one.` : ''}`,
    )
}

/** Does so for root on Debian, and nothing for anybody else. */
function install(packages) {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return
  console.log(`installing ${packages.join(', ')} (output in ${relative(ROOT, INSTALL_LOG)})`)
  mkdirSync(join(ROOT, 'build'), { recursive: true })
  const log = openSync(INSTALL_LOG, 'w')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', ...packages]]) {
    spawnSync('apt-get', ['-q', ...args], { stdio: ['ignore', log, log], env })
  }
  closeSync(log)
}

/** Tests start programs by name: those that the PATH would not lead to are linked to a folder on it. */
function expose(programs) {
  rmSync(LINKS, { recursive: true, force: true })
  const folders = (process.env.PATH ?? '').split(delimiter)
  for (const program of programs) {
    const place = find(program)
    if (place === null || folders.some((folder) => join(folder, program.command) === place)) continue
    mkdirSync(LINKS, { recursive: true })
    symlinkSync(resolve(place), join(LINKS, program.command))
  }
  process.env.PATH = [LINKS, ...folders].join(delimiter)
}
