// The compose file against the program it runs: what it sets exists, what it needs is there, and nothing secret has a default.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BadSetting, PROCESS_ROLES, readConfig } from '../../src/config.ts'
import { makeKeys } from '../helpers/server.ts'
import {
  asList,
  asMap,
  asText,
  compose,
  environmentOf,
  filesUnder,
  processes,
  read,
  root,
  services,
  single,
} from './deploy.ts'
import { readYaml } from './yaml.ts'

const keys = makeKeys()
const SECRETS: Readonly<Record<string, string>> = {
  NATS_PASSWORD: 'nats-secret',
  REDIS_PASSWORD: 'redis-secret',
  HISTORY_PASSWORD: 'history-secret',
  FINGERPOST_PUBLIC_KEY: keys.public,
  FINGERPOST_SECRET_KEY: keys.secret,
  FINGERPOST_TEST_PUBLIC_KEY: keys.testPublic,
  FINGERPOST_TEST_SECRET_KEY: keys.testSecret,
  FINGERPOST_OPERATOR_TOKEN: 'x'.repeat(32),
}

/** What compose puts in place of a variable. */
const fill = (text: string): string =>
  text.replace(/\$\{(\w+):\?[^}]*\}/g, (_, name: string) => {
    const secret = SECRETS[name]
    if (secret === undefined) throw new Error(`${name} has no value here`)
    return secret
  })

const configOf = (environment: Record<string, string>) =>
  readConfig(Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, fill(value)])))

t.test('the reader of YAML refuses what it does not know', async (t) => {
  t.same(readYaml('a: &x\n  b: [1, "2, 3"]\nc:\n  <<: *x\n  d: e\nf:\n  - g: h\n'), {
    a: { b: ['1', '2, 3'] },
    c: { b: ['1', '2, 3'], d: 'e' },
    f: [{ g: 'h' }],
  })
  for (const odd of [
    'a: |\n  b',
    'a: {b: c}',
    'a: b # c',
    'a: *b',
    'a: 1\na: 2',
    'a:\n  b: 1\n c: 2',
    'a: b: c',
    '- a',
    'a: "b',
  ]) {
    t.throws(() => readYaml(odd), { message: /^line \d/ }, odd)
  }
})

t.test('every process accepts its settings, and together they run every role', async (t) => {
  const roles = new Map<string, number>()
  for (const { name, service } of processes) {
    const config = configOf(environmentOf(service))
    t.ok(config.isCluster, name)
    t.equal(config['nats.replicas'], 3, name)
    t.same(
      config['nats.servers'].map((url) => new URL(url).hostname),
      ['nats-1', 'nats-2', 'nats-3'],
      name,
    )
    t.same(
      config['nats.monitorUrls'].map((url) => new URL(url).hostname),
      ['nats-1', 'nats-2', 'nats-3'],
      name,
    )
    for (const role of config.roles) roles.set(role, (roles.get(role) ?? 0) + 1)
  }
  t.same([...roles.keys()].sort(), [...PROCESS_ROLES].sort())
  for (const role of ['ingress', 'engine']) t.ok((roles.get(role) ?? 0) >= 2, `two of ${role}`)
})

t.test('every setting that a file of deploy/ or config/ names exists', async (t) => {
  const named = new Map<string, string>()
  for (const file of [...filesUnder('deploy'), ...filesUnder('config')]) {
    for (const [name] of read(file).matchAll(/\bFINGERPOST_[A-Z0-9_]+/g)) named.set(name, file)
  }
  t.ok(named.size > 10)
  for (const [name, file] of named) {
    try {
      readConfig({ [name]: 'x' })
    } catch (error) {
      t.ok(error instanceof BadSetting && !error.message.startsWith('unknown setting'), `${name} in ${file}`)
    }
  }
})

t.test('the presets are accepted, the one for a cluster names its servers', async (t) => {
  for (const file of filesUnder('config')) t.ok(readConfig({ FINGERPOST_CONFIG: join(root, file) }), file)
  const cluster = readConfig({ FINGERPOST_CONFIG: join(root, 'config/cluster.json') })
  t.ok(cluster.isCluster)
  t.equal(cluster.partitions, 16)
  t.equal(cluster['nats.servers'].length, 3)
  t.notOk(readConfig({ FINGERPOST_CONFIG: join(root, 'config/embedded.json') }).isCluster)
})

t.test('no secret has a value or a default', async (t) => {
  const text = read('deploy/compose.yml')
  const variables = [...text.matchAll(/(?<!\$)\$\{?(\w+)([^}\n]*)\}?/g)]
  const wanted = new Set<string>()
  for (const [whole, name = '', rest = ''] of variables) {
    t.ok(whole.startsWith('${') && rest.startsWith(':?'), `${whole} makes compose refuse`)
    wanted.add(name)
  }
  const example = new Map(
    read('deploy/.env.example')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const),
  )
  t.same([...example.keys()].sort(), [...wanted].sort(), '.env.example names them all')
  for (const [name, value] of example) t.equal(value, '', `${name} is left empty`)
  for (const { name, service } of services.filter(({ service }) => 'environment' in service)) {
    for (const [variable, value] of Object.entries(environmentOf(service))) {
      if (/PASSWORD|TOKEN|_KEY$|AUTH|URL$/.test(variable) && !/CLICKHOUSE_URL$/.test(variable)) {
        t.match(value, /\$\{\w+:\?/, `${variable} of ${name}`)
      }
    }
  }
})

t.test('images are pinned, and ours is the version of this repository', async (t) => {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  for (const { name, service } of services) {
    const image = asText(service.image, `the image of ${name}`)
    if ('build' in service) t.equal(image, `fingerpost-cluster:${version}`, name)
    else t.match(image, /^[a-z0-9/-]+:\d+\.\d+\.\d+(\.\d+)?(-[a-z]+[\d.]*)?$/, name)
  }
})

t.test('what is mounted, awaited and joined exists', async (t) => {
  const volumes = Object.keys(asMap(compose.volumes, 'volumes'))
  const networks = Object.keys(asMap(compose.networks, 'networks'))
  const names = services.map(({ name }) => name)
  for (const { name, service } of services) {
    for (const mount of 'volumes' in service ? asList(service.volumes, name) : []) {
      const source = mount.replace(/\$\{[^}]*\}/, '').split(':')[0] as string
      if (source.startsWith('./')) t.ok(existsSync(join(root, 'deploy', source)), source)
      else if (!mount.startsWith('${')) t.ok(volumes.includes(source), `${source} of ${name}`)
    }
    const joined = Array.isArray(service.networks) ? service.networks : Object.keys(asMap(service.networks, name))
    for (const network of joined) t.ok(networks.includes(network), `${network} of ${name}`)
    const { build } = service
    if (build !== undefined) {
      const { context, dockerfile } = asMap(build, name)
      t.equal(context, '..')
      t.ok(existsSync(join(root, asText(dockerfile, name))))
    }
    for (const other of 'depends_on' in service ? Object.keys(asMap(service.depends_on, name)) : []) {
      t.ok(names.includes(other), `${name} waits for ${other}`)
    }
  }
  t.equal(asMap(asMap(compose.networks, 'networks').inside, 'inside').internal, 'true', 'stores are not reachable')
})

t.test('every process can drain, is asked whether it is ready, and may open enough files', async (t) => {
  for (const { name, service } of processes) {
    t.equal(service.stop_grace_period, '30s', name)
    t.same(asMap(service.healthcheck, name).test, ['CMD', 'node', 'deploy/healthcheck.mjs', '/readyz'], name)
    const { soft } = asMap(asMap(service.ulimits, name).nofile, name)
    t.ok(Number(soft) >= 65_536, name)
    t.equal(service.read_only, 'true', name)
  }
  for (const { name, service } of services) {
    t.ok('healthcheck' in service, name)
    t.equal(name === 'nginx', 'ports' in service, `only nginx is reachable from outside, not ${name}`)
  }
})

t.test('only nginx is believed about addresses', async (t) => {
  const edge = asMap(compose.services, 'services').nginx
  const address = asMap(asMap(asMap(edge, 'nginx').networks, 'networks').edge, 'edge').ipv4_address
  for (const { name, service } of processes) {
    t.equal(environmentOf(service).FINGERPOST_TRUSTED_PROXIES, `${address}/32`, name)
  }
})

t.test(
  'one machine needs no secret, keeps everything in one volume, and is reached from this machine alone',
  async (t) => {
    const { version } = JSON.parse(read('package.json')) as { version: string }
    t.same(Object.keys(asMap(single.services, 'services')), ['fingerpost'])
    const service = asMap(asMap(single.services, 'services').fingerpost, 'fingerpost')
    t.notMatch(read('deploy/compose.single.yml'), /\$\{/, 'nothing is to be filled in')
    // The image listens outside of its container.
    const config = readConfig({ ...environmentOf(service), FINGERPOST_HOST: '0.0.0.0' })
    t.notOk(config.isCluster)
    t.equal(service.image, `fingerpost:${version}`)
    const { context, dockerfile } = asMap(service.build, 'build')
    t.equal(context, '..')
    const image = read(asText(dockerfile, 'dockerfile'))
    const [, folder] = /^VOLUME (\S+)$/m.exec(image) ?? []
    t.same(asList(service.volumes, 'volumes'), [`data:${folder}`])
    t.same(Object.keys(asMap(single.volumes, 'volumes')), ['data'])
    const [, port] = /^EXPOSE (\d+)$/m.exec(image) ?? []
    t.same(asList(service.ports, 'ports'), [`127.0.0.1:9080:${port}`])
    t.match(read('deploy/nginx/upstreams-single.conf'), 'server 127.0.0.1:9080;')
    const networks = asMap(single.networks, 'networks')
    t.same(asList(service.networks, 'networks'), Object.keys(networks))
    const [, subnet] = /subnet: (\S+)\.0\/24$/m.exec(read('deploy/compose.single.yml')) ?? []
    t.equal(environmentOf(service).FINGERPOST_TRUSTED_PROXIES, `${subnet}.1/32`, 'what comes over the published port')
    t.same(asMap(service.healthcheck, 'healthcheck').test, ['CMD', 'node', 'deploy/healthcheck.mjs', '/readyz'])
    const { soft } = asMap(asMap(service.ulimits, 'ulimits').nofile, 'nofile')
    t.ok(Number(soft) >= 65_536)
    const members = { read_only: 'true', stop_grace_period: '30s', restart: 'unless-stopped' }
    for (const [member, value] of Object.entries(members)) t.equal(service[member], value)
  },
)
