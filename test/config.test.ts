// Settings: what is documented is what runs, and what cannot be is refused by name.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BadSetting, defaultsJson, helpText, readConfig } from '../src/config.ts'
import { SETTINGS } from '../src/settings.ts'

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

t.test('--help names every setting', async (t) => {
  for (const { sentence } of SETTINGS) t.match(helpText(), sentence)
})

t.test('short and long environment names mean the same setting, and the file loses to them', async (t) => {
  t.equal(readConfig({ FINGERPOST_PORT: '9000' })['http.port'], 9000)
  t.equal(readConfig({ FINGERPOST_HTTP_PORT: '9001' })['http.port'], 9001)
  const file = new URL('config/embedded.json', root).pathname
  t.equal(readConfig({ FINGERPOST_CONFIG: file, FINGERPOST_DATA_DIR: '/x' })['data.dir'], '/x')
  t.same(readConfig({ FINGERPOST_TRUSTED_PROXIES: '10.0.0.0/8, ::1' })['http.trustedProxies'], ['10.0.0.0/8', '::1'])
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
    ['FINGERPOST_TLS_CERT_FILE', '/cert.pem', /together/],
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
  t.ok(new BadSetting('x') instanceof Error)
})
