// Everything that the guides print to be pasted works as it stands, each guide on a workspace of its own; the index names each of them.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { blocksOf, removeModules } from '../helpers/printed.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant, removeAlerts } from '../helpers/tenant.ts'
import { read, root } from './deploy.ts'
import { firstLine, openTrier, reasonOf } from './printed-blocks.ts'

t.setTimeout(300_000)
t.teardown(cleanUp)
t.teardown(removeModules)

const FOLDER = 'src/docs/guides'
const guides = readdirSync(join(root, FOLDER)).filter((name) => name !== 'README.md')

t.test('the index of the guides names each of them once, by its title', (t) => {
  const listed = [...read(`${FOLDER}/README.md`).matchAll(/^- \[([^\]]+)\]\(([^)]+)\): \S/gm)]
  t.same(listed.map(([, , name]) => name).sort(), guides.sort())
  for (const [, title, name] of listed) t.ok(read(`${FOLDER}/${name}`).startsWith(`# ${title}\n`), `${name}: ${title}`)
  t.end()
})

t.test('links of the guides lead somewhere', (t) => {
  for (const guide of guides) {
    for (const [, target = ''] of read(`${FOLDER}/${guide}`).matchAll(/\]\(([^)#]+)[^)]*\)/g)) {
      t.ok(/^https:/.test(target) || guides.includes(target), `${guide}: ${target}`)
    }
  }
  t.end()
})

for (const guide of guides) {
  const blocks = blocksOf(read(`${FOLDER}/${guide}`))
  if (blocks.length === 0) continue
  t.test(guide, async (t) => {
    const tenant = await openTenant()
    t.teardown(() => removeAlerts(tenant))
    const { tryBlock } = await openTrier(tenant)
    for (const block of blocks) {
      const reason = reasonOf(block)
      const kept = reason === undefined ? 'works' : `can be read (${reason})`
      await t.test(`“${firstLine(block)}” ${kept}`, (t) => tryBlock(t, block))
    }
  })
}
