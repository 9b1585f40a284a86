// Settings: what is documented is what runs, and what cannot be is refused by name.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { environmentNames, readConfig, warnings } from '../src/config.ts'
import { findPresent } from '../src/ops/doctor/local.ts'
import { defaultsJson, sectionNames, settingsText } from '../src/ops/settings-text.ts'
import { consolePlace, httpSettings, outgoingSettings } from '../src/role-settings.ts'
import { SETTINGS } from '../src/settings.ts'
import { makeAuthority } from './helpers/receiver.ts'

const root = new URL('../../', import.meta.url)

t.test('config/default.json is the printed table of settings', async (t) => {
  t.equal(readFileSync(new URL('config/default.json', root), 'utf8'), defaultsJson())
})

t.test('every file in config/ is accepted', async (t) => {
  for (const name of ['default.json', 'embedded.json']) {
    const config = readConfig({ FINGERPOST_CONFIG: new URL(`config/${name}`, root).pathname })
    t.equal(config.partitions, 4, name)
  }
})

t.test('fingerpost help settings tells of every setting once, and of its default, in its section', async (t) => {
  const sections = sectionNames()
  t.equal(settingsText(), sections.map((section) => settingsText(section)).join('\n\n'))
  for (const setting of SETTINGS) {
    const { name, sentence, standard } = setting
    const parts = settingsText(name.split('.')[0]).split(`  ${environmentNames(setting)[0]}\n      ${sentence}`)
    t.equal(parts.length, 2, name)
    if (typeof standard === 'number') t.match(parts[1], new RegExp(`^ Default ${standard}\\.`), name)
  }
})

t.test('short and long environment names mean the same setting, and the file loses to them', async (t) => {
  t.equal(readConfig({ FINGERPOST_PORT: '9000' })['http.port'], 9000)
  t.equal(readConfig({ FINGERPOST_HTTP_PORT: '9001' })['http.port'], 9001)
  const file = new URL('config/embedded.json', root).pathname
  t.equal(readConfig({ FINGERPOST_CONFIG: file, FINGERPOST_DATA_DIR: '/x' })['data.dir'], '/x')
  t.same(readConfig({ FINGERPOST_TRUSTED_PROXIES: '10.0.0.0/8, ::1' })['http.trustedProxies'], ['10.0.0.0/8', '::1'])
})

t.test('of two names of one setting the long one wins, in whichever order they stand', async (t) => {
  const [short, long] = [{ FINGERPOST_PORT: '8080' }, { FINGERPOST_HTTP_PORT: '9001' }]
  t.equal(readConfig({ ...short, ...long })['http.port'], 9001)
  t.equal(readConfig({ ...long, ...short })['http.port'], 9001)
  t.equal(readConfig({ FINGERPOST_HTTP_PORT: '', ...short })['http.port'], 8080, 'an empty one is none')
})

t.test('the file of settings is read under both names, and names no other file', async (t) => {
  const file = join(t.testdir({ 'settings.json': '{"http":{"port":9002}}' }), 'settings.json')
  for (const name of ['FINGERPOST_CONFIG', 'FINGERPOST_CONFIG_FILE']) {
    const config = readConfig({ [name]: file })
    t.same([config['http.port'], config['config.file']], [9002, file], name)
  }
  writeFileSync(file, JSON.stringify({ config: { file: '/other.json' } }))
  t.throws(() => readConfig({ FINGERPOST_CONFIG: file }), { name: 'BadSetting', message: /config\.file.*environment/ })
})

t.test('what Kubernetes sets for a Service of our name is no setting, and the port can still be set', async (t) => {
  const links = {
    FINGERPOST_SERVICE_HOST: '10.0.0.1',
    FINGERPOST_SERVICE_PORT: '8080',
    FINGERPOST_SERVICE_PORT_HTTP: '8080',
    FINGERPOST_PORT: 'tcp://10.0.0.1:8080',
    FINGERPOST_PORT_8080_TCP: 'tcp://10.0.0.1:8080',
    FINGERPOST_PORT_8080_TCP_PROTO: 'tcp',
    FINGERPOST_PORT_8080_TCP_PORT: '8080',
    FINGERPOST_PORT_8080_TCP_ADDR: '10.0.0.1',
    FINGERPOST_API_PORT: 'tcp://10.0.0.2:8080',
    FINGERPOST_API_SERVICE_HOST: '10.0.0.2',
  }
  const config = readConfig({ ...links, FINGERPOST_HTTP_PORT: '9001' })
  t.equal(config['http.port'], 9001)
  t.same([...config.ignored].sort(), Object.keys(links).sort())
  t.match(warnings(config), [/FINGERPOST_SERVICE_HOST.*FINGERPOST_HTTP_PORT sets the port/])
  t.same(warnings(readConfig({})), [])
})

t.test('a setting that cannot be is refused with its name', async (t) => {
  const refused: [string, string, RegExp][] = [
    ['FINGERPOST_PROT', '1', /FINGERPOST_PROT/],
    ['FINGERPOST_PORT', 'eighty', /FINGERPOST_PORT.*whole number/],
    ['FINGERPOST_PORT', '65536', /FINGERPOST_PORT/],
    ['FINGERPOST_LOG_DURABILITY', 'maybe', /fsync, relaxed/],
    ['FINGERPOST_TRUSTED_PROXIES', 'proxy', /proxy is no CIDR/],
    ['FINGERPOST_PUBLIC_KEY', 'pk_live_short', /keys.public/],
    ['FINGERPOST_OPERATOR_TOKEN', 'short', /32 characters/],
    ['FINGERPOST_HOST', '0.0.0.0', /not loopback/],
    ['FINGERPOST_URL', 'fingerpost.example', /http.publicUrl takes an address/],
    ['FINGERPOST_URL', 'https://fingerpost.example/path', /http.publicUrl takes an address/],
    ['FINGERPOST_TLS_CERT_FILE', '/cert.pem', /together/],
    ['FINGERPOST_TEST_SECRET_KEY', 'sk_live_short', /FINGERPOST_TEST_SECRET_KEY.*live environment/],
    ['FINGERPOST_CONSOLE_OIDC_ISSUER', 'https://login.example', /together/],
    ['FINGERPOST_CONSOLE_OIDC_ROLE', 'admin', /viewer, analyst, editor/],
    ['FINGERPOST_CONFIG', '/nowhere.json', /cannot be read/],
  ]
  for (const [name, value, message] of refused) {
    t.throws(() => readConfig({ [name]: value }), { name: 'BadSetting', message }, name)
  }
  const file = join(t.testdir(), 'settings.json')
  for (const [content, message] of [
    [{ nope: 1 }, /unknown section: nope/],
    [{ nope: {} }, /unknown section: nope/],
    [{ http: { nope: 1 } }, /unknown setting: http\.nope/],
    [{ http: 8080 }, /object of settings as http/],
    [[], /no object/],
    [null, /no object/],
  ] as const) {
    writeFileSync(file, JSON.stringify(content))
    t.throws(() => readConfig({ FINGERPOST_CONFIG: file }), { name: 'BadSetting', message }, JSON.stringify(content))
  }
  t.ok(readConfig({ FINGERPOST_HOST: '0.0.0.0', FINGERPOST_ALLOW_PLAIN_HTTP: 'true' }))
})

t.test('a certificate or a key that cannot be served with is refused with its setting and its path', async (t) => {
  const dir = t.testdir({ 'garbage.pem': 'no PEM at all' })
  const [garbage, nowhere] = [join(dir, 'garbage.pem'), join(dir, 'nowhere.pem')]
  const authority = makeAuthority(t)
  const saved = (name: string, text: string) => {
    writeFileSync(join(dir, name), text)
    return join(dir, name)
  }
  const [leaf, other] = [authority.leaf('DNS:localhost'), authority.leaf('DNS:localhost')]
  const [cert, key] = [saved('cert.pem', leaf.cert), saved('key.pem', leaf.key)]
  const httpWith = (certFile: string, keyFile: string) =>
    httpSettings(readConfig({ FINGERPOST_TLS_CERT_FILE: certFile, FINGERPOST_TLS_KEY_FILE: keyFile }))
  t.same(httpWith(cert, key).tls, { certFile: cert, keyFile: key })
  for (const [certFile, keyFile, setting, path] of [
    [nowhere, key, 'tls.certFile', nowhere],
    [garbage, key, 'tls.certFile', garbage],
    [cert, nowhere, 'tls.keyFile', nowhere],
    [cert, garbage, 'tls.keyFile', garbage],
    [cert, saved('other.pem', other.key), 'tls.keyFile', 'other.pem is not the key of'],
    [saved('chain.pem', `${leaf.cert}${leaf.cert.slice(0, 200)}`), key, 'tls.certFile', 'chain.pem'],
  ] as const) {
    const message = new RegExp(`^${setting}: .*${path}`)
    t.throws(() => httpWith(certFile, keyFile), { name: 'BadSetting', message }, `${certFile} ${keyFile}`)
  }
})

t.test(
  'servers of a cluster and ranges of webhooks that cannot be are refused by name, without their passwords',
  async (t) => {
    const garbage = join(t.testdir({ 'garbage.pem': 'no PEM at all' }), 'garbage.pem')
    const cluster = { FINGERPOST_DEPLOYMENT_MODE: 'cluster' }
    for (const more of [
      {},
      { FINGERPOST_NATS_SERVERS: 'nats-1:4222, tls://nats-2:4222, [::1]:4222' },
      { FINGERPOST_REDIS_URL: 'rediss://user:hidden@redis:6379/2', FINGERPOST_REDIS_CLUSTER_NODES: 'a:6379,b:6379' },
      { FINGERPOST_WEBHOOKS_IPV4: '203.0.113.0/24,192.0.2.1', FINGERPOST_WEBHOOKS_IPV6: '2001:db8::/32' },
      { FINGERPOST_NATS_CA_FILE: makeAuthority(t).caFile },
    ]) {
      t.ok(readConfig({ ...cluster, ...more }), JSON.stringify(more))
    }
    for (const [name, value, message] of [
      ['FINGERPOST_NATS_SERVERS', ',', /^nats\.servers takes nats:/],
      ['FINGERPOST_NATS_SERVERS', 'http://hidden:4222', /^nats\.servers/],
      ['FINGERPOST_NATS_SERVERS', 'http://foo:bar', /^nats\.servers/],
      ['FINGERPOST_NATS_MONITOR_URLS', 'nats-1:8222', /^nats\.monitorUrls takes http:/],
      ['FINGERPOST_REDIS_URL', 'foo', /^redis\.url takes redis:/],
      ['FINGERPOST_REDIS_URL', 'redis://:hidden@foo:bar', /^redis\.url/],
      ['FINGERPOST_REDIS_CLUSTER_NODES', 'a:6379, b:port', /^redis\.clusterNodes/],
      ['FINGERPOST_CLICKHOUSE_URL', 'foo', /^clickhouse\.url takes http:/],
      ['FINGERPOST_NATS_CA_FILE', '/nowhere.pem', /^nats\.caFile: \/nowhere\.pem cannot be read/],
      ['FINGERPOST_NATS_CREDS_FILE', '/nowhere.creds', /^nats\.credsFile: \/nowhere\.creds cannot be read/],
      ['FINGERPOST_REDIS_CA_FILE', garbage, /^redis\.caFile: .*garbage\.pem holds no certificate/],
      ['FINGERPOST_WEBHOOKS_IPV4', 'foo', /^webhooks\.ipv4: foo is no IPv4 range/],
      ['FINGERPOST_WEBHOOKS_IPV4', '2001:db8::/32', /^webhooks\.ipv4/],
      ['FINGERPOST_WEBHOOKS_IPV6', '203.0.113.0/24', /^webhooks\.ipv6/],
    ] as const) {
      const read = () => readConfig({ ...cluster, [name]: value })
      t.throws(read, { name: 'BadSetting', message }, `${name} ${value}`)
      t.throws(read, { message: /^(?!.*hidden)/ })
    }
    const authorities = (file: string) => outgoingSettings(readConfig({ FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: file }))
    t.throws(() => authorities(garbage), { name: 'BadSetting', message: /webhooks\.extraCaFile: .*no certificate/ })
    t.throws(() => authorities('/nowhere'), { name: 'BadSetting', message: /webhooks\.extraCaFile: \/nowhere/ })
    t.match(findPresent(readConfig({ FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: garbage })).at(-1), { level: 'bad' })
  },
)

t.test('a provider of sign-ins is reached safely, and its secret is in one place', async (t) => {
  const set = { FINGERPOST_CONSOLE_OIDC_ISSUER: 'https://login.example', FINGERPOST_CONSOLE_OIDC_CLIENT_ID: 'console' }
  t.equal(readConfig(set)['console.oidcLabel'], 'single sign-on')
  t.ok(readConfig({ ...set, FINGERPOST_CONSOLE_OIDC_ISSUER: 'http://127.0.0.1:9000' }))
  for (const [more, message] of [
    [{ FINGERPOST_CONSOLE_OIDC_ISSUER: 'http://login.example' }, /http only of this machine/],
    [{ FINGERPOST_CONSOLE_OIDC_ISSUER: 'login.example' }, /takes an address/],
    [{ FINGERPOST_CONSOLE_OIDC_ISSUER: 'https://login.example/?tenant=1' }, /takes an address/],
    [{ FINGERPOST_CONSOLE_OIDC_ISSUER: 'javascript:alert(1)' }, /takes an address/],
    [{ FINGERPOST_CONSOLE_OIDC_DOMAINS: 'shop.example, *' }, /\* is no domain/],
    [{ FINGERPOST_CONSOLE_OIDC_LABEL: 'x'.repeat(61) }, /60 characters/],
    [{ FINGERPOST_CONSOLE_OIDC_CLIENT_SECRET: 'a', FINGERPOST_CONSOLE_OIDC_CLIENT_SECRET_FILE: '/b' }, /not set both/],
  ] as const) {
    t.throws(() => readConfig({ ...set, ...more }), { name: 'BadSetting', message }, JSON.stringify(more))
  }
  const port = () => 8_080
  const dir = t.testdir({ secret: 'of a file\n', empty: '\n' })
  const from = (path: string) => readConfig({ ...set, FINGERPOST_CONSOLE_OIDC_CLIENT_SECRET_FILE: path })
  t.equal(consolePlace(from(join(dir, 'secret')), port).oidc?.clientSecret, 'of a file')
  t.throws(() => consolePlace(from(join(dir, 'empty')), port), {
    name: 'BadSetting',
    message: /empty line/,
  })
  t.throws(() => consolePlace(from('/nowhere'), port), { name: 'BadSetting', message: /oidcClientSecretFile/ })
})

t.test('less free disk than LMDB needs for itself is never taken for enough', async (t) => {
  const freeBytesMin = (text: string) => readConfig({ FINGERPOST_DATA_FREE_BYTES_MIN: text }).freeBytesMin
  t.equal(freeBytesMin('0'), 64 * 1024 * 1024)
  t.equal(freeBytesMin('1000000000'), 1_000_000_000)
})
