// The Node versions that package.json promises are those that tests can be run under.

import { readFileSync } from 'node:fs'
import t from 'tap'

const file = (path: string) => new URL(`../../../${path}`, import.meta.url)
const { NEWER, provideNode, TESTED } = await import(file('.scripts/test-node.mjs').href)

t.test('every version of engines has one that stands for it, and there is no other', (t) => {
  const { engines } = JSON.parse(readFileSync(file('package.json'), 'utf8')) as { engines: { node: string } }
  const promised = engines.node.split(' || ').map((range) => /^\^(\d+)\.(\d+)\.\d+$/.exec(range)?.slice(1) ?? [])
  t.same(
    promised.map(([major]) => major),
    Object.keys(TESTED),
  )
  for (const [major = '', minor] of promised) {
    const [testedMajor, testedMinor] = TESTED[major].split('.')
    t.equal(testedMajor, major)
    t.ok(Number(testedMinor) >= Number(minor), `${TESTED[major]} is within`)
  }
  t.ok(TESTED[NEWER], 'npm test asks for one of them')
  t.end()
})

t.test('this Node is taken where it is, and what is no version is refused', (t) => {
  t.equal(provideNode(process.version.slice(1)), process.execPath)
  for (const wrong of ['21', 'latest', '24; ls', '']) t.throws(() => provideNode(wrong), /none of 20, 22, 24, 26/)
  t.end()
})
