// What scripts make of a registry's answers: hashes for the lockfile, known vulnerabilities, signatures, and no answer at all.

import t from 'tap'

const scripts = new URL('../../../.scripts/', import.meta.url)
const { complete, completeHashes } = await import(new URL('complete-lock.mjs', scripts).href)
const { readSignatures, readVulnerabilities } = await import(new URL('audit.mjs', scripts).href)

const HASH = `sha512-${'A'.repeat(86)}==`
const OTHER = `sha512-${'B'.repeat(86)}==`

t.test('an entry without a hash gets the one the registry has, and every other stays as it is', async (t) => {
  const packages = {
    '': { version: '1.0.0' },
    'node_modules/@x/tool': {
      version: '1.0.0',
      integrity: OTHER,
      optionalDependencies: { '@x/tool-darwin-arm64': '1.0.0' },
    },
    'node_modules/@x/tool-linux-x64': { version: '1.0.0', cpu: ['x64'], optional: true },
    'node_modules/a/node_modules/b': { version: '2.0.0' },
    'node_modules/alias': { name: 'real', version: '3.0.0' },
    'node_modules/odd': { version: '4.0.0' },
    'node_modules/linked': { link: true },
  }
  const lock = { packages: structuredClone(packages) as Record<string, { version?: string; integrity?: string }> }
  complete(lock)
  const asked: string[] = []
  const ask = async (name: string, version: string) => {
    asked.push(`${name}@${version}`)
    if (name === '@x/tool-darwin-arm64') return null
    return name === 'odd' ? 'sha1-short' : HASH
  }
  const { hashed, unhashed } = await completeHashes(lock, ask)
  t.same(asked.sort(), ['@x/tool-darwin-arm64@1.0.0', '@x/tool-linux-x64@1.0.0', 'b@2.0.0', 'odd@4.0.0', 'real@3.0.0'])
  t.same(hashed.sort(), ['@x/tool-linux-x64@1.0.0', 'b@2.0.0', 'real@3.0.0'])
  t.same(unhashed.sort(), ['@x/tool-darwin-arm64@1.0.0', 'odd@4.0.0'])
  t.equal(lock.packages['node_modules/@x/tool']?.integrity, OTHER)
  t.equal(lock.packages['node_modules/odd']?.integrity, undefined)
  t.same(lock.packages['node_modules/@x/tool-linux-x64'], {
    version: '1.0.0',
    integrity: HASH,
    cpu: ['x64'],
    optional: true,
  })
})

t.test('grave vulnerabilities and wrong signatures fail, others are told', (t) => {
  const audit = (counts: object) =>
    readVulnerabilities(
      JSON.stringify({
        vulnerabilities: { bad: { name: 'bad', severity: 'high', range: '<2' } },
        metadata: { vulnerabilities: { low: 0, high: 0, critical: 0, total: 1, ...counts } },
      }),
    )
  t.match(audit({ high: 1 }), { failed: true, lines: [/^high: bad <2$/, /1 known, 1 of them grave/] })
  t.match(audit({ low: 1 }), { failed: false })
  t.match(readSignatures('{"invalid":[],"missing":[{}]}'), { failed: false, lines: ['signatures: 0 wrong, 1 missing'] })
  const wrong = readSignatures('{"invalid":[{"name":"x","version":"1.0.0"}],"missing":[]}')
  t.match(wrong, { failed: true, lines: ['the signature of x@1.0.0 is wrong', /1 wrong/] })
  t.end()
})

t.test('a registry that gives no answer is named and fails nothing', (t) => {
  for (const [said, why] of [
    ['', 'no answer'],
    ['not JSON', 'no answer'],
    ['{"message":"405 Method Not Allowed - POST …"}', '405 Method Not Allowed'],
    ['{"error":{"code":"ENOTFOUND","summary":"getaddrinfo ENOTFOUND registry"}}', 'ENOTFOUND'],
  ] as const) {
    for (const read of [readVulnerabilities, readSignatures]) {
      const { failed, lines } = read(said)
      t.equal(failed, false)
      t.match(lines, [new RegExp(`NOT CHECKED.*${why}`)])
    }
  }
  t.end()
})
