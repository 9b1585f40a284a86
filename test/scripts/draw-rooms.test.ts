// The picture of the rooms is that of today's code, and every room is in it.

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const { drawRooms } = await import(new URL('../../../.scripts/draw-rooms.mjs', import.meta.url).href)

t.test('the picture of the rooms shows the imports of today: `npm run draw` writes it anew', (t) => {
  t.equal(readFileSync(`${ROOT}/src/docs/rooms.svg`, 'utf8'), drawRooms())
  t.end()
})

t.test('every folder of src is a room in the picture, but for its documents', (t) => {
  const folders = readdirSync(`${ROOT}/src`, { withFileTypes: true }).filter((one) => one.isDirectory())
  const rooms = folders.map(({ name }) => name).filter((name) => !['docs', 'decisions'].includes(name))
  const picture = drawRooms()
  for (const room of rooms) t.match(picture, `>${room}</text>`)
  t.end()
})
