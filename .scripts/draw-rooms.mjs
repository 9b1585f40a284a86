// Draws the rooms of src and who imports whom as src/docs/rooms.svg, from the import line in src/README.md and the imports in the code.
// `npm run draw` writes it; a test holds the file to what this would write.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TARGET = 'src/docs/rooms.svg'

/** What each room is for, in as few words as its box has room for. */
const PURPOSE = {
  domain: 'nouns, ids, errors',
  lib: 'tools without our nouns',
  http: 'two HTTP drivers',
  log: 'durable log',
  bus: 'hints, replies',
  kv: 'state',
  limits: 'rates',
  clickhouse: 'history',
  records: 'our nouns in log and kv',
  events: 'fields, rows, public form',
  rules: 'parse, compile, SQL',
  identity: 'who is it',
  ipintel: 'what an address is',
  ingress: 'accept, answer',
  engine: 'decide',
  control: 'configuration',
  sink: 'rows to ClickHouse',
  dispatcher: 'webhooks',
  reads: 'questions',
  jobs: 'trim, expire, erase',
  api: 'REST by resource',
  client: 'client for Node',
  ops: 'backup, seed, rebuild',
  shards: 'a thread per core',
  sdk: 'in the browser',
  console: 'in the browser',
}

const BOX = { width: 132, height: 44, gapX: 18, gapY: 46 }
const MARGIN = 24

/** Ranks of the import line, lowest first; each a list of rooms that do not import one another. */
export function readLine(readme) {
  const [, line] = /```\n(domain <[\s\S]*?)\nsdk:/.exec(readme) ?? []
  if (line === undefined) throw new Error('src/README.md has no import line')
  return line.split('<').map((rank) => rank.split('|').map((name) => name.trim()))
}

/** Rooms by the rooms their files import, leaving out what another import leads to anyway. */
function readImports(src, rooms) {
  const direct = new Map(rooms.map((room) => [room, new Set()]))
  for (const room of rooms) {
    for (const name of readdirSync(join(src, room), { recursive: true, encoding: 'utf8' }).filter((one) =>
      /\.tsx?$/.test(one),
    )) {
      const file = posix.join(room, name.replaceAll('\\', '/'))
      for (const [, target] of readFileSync(join(src, file), 'utf8').matchAll(/from '(\.[^']+)'/g)) {
        const [to] = posix.join(posix.dirname(file), target).split('/')
        if (to !== room && direct.has(to)) direct.get(room).add(to)
      }
    }
  }
  const reach = (from, seen = new Set()) => {
    for (const to of direct.get(from)) if (!seen.has(to)) reach(to, seen.add(to))
    return seen
  }
  const isShown = (from, to) => ![...direct.get(from)].some((other) => other !== to && reach(other).has(to))
  return rooms.flatMap((from) => [...direct.get(from)].filter((to) => isShown(from, to)).map((to) => ({ from, to })))
}

/** The picture as text. `root`: of the repository. */
export function drawRooms(root = ROOT) {
  const src = join(root, 'src')
  const isRoom = (name) => Object.hasOwn(PURPOSE, name)
  const folders = readdirSync(src, { withFileTypes: true })
    .filter((one) => one.isDirectory())
    .map(({ name }) => name)
  const ranks = readLine(readFileSync(join(src, 'README.md'), 'utf8'))
    .map((rank) => rank.filter(isRoom))
    .filter((rank) => rank.length > 0)
  const aside = folders.filter((name) => isRoom(name) && !ranks.flat().includes(name))
  const rows = [...ranks.map((rank) => [...rank])]
  rows[1].push(...aside)

  const columns = Math.max(...rows.map(({ length }) => length))
  const width = 2 * MARGIN + columns * BOX.width + (columns - 1) * BOX.gapX
  const height = 2 * MARGIN + rows.length * BOX.height + (rows.length - 1) * BOX.gapY
  const places = new Map()
  for (const [rank, rooms] of rows.entries()) {
    const rowWidth = rooms.length * BOX.width + (rooms.length - 1) * BOX.gapX
    const y = height - MARGIN - BOX.height - rank * (BOX.height + BOX.gapY)
    for (const [at, room] of rooms.entries()) {
      places.set(room, { x: (width - rowWidth) / 2 + at * (BOX.width + BOX.gapX), y })
    }
  }

  const edges = readImports(src, rows.flat()).map(({ from, to }) => {
    const [a, b] = [places.get(from), places.get(to)]
    const [x1, y1, x2, y2] = [a.x + BOX.width / 2, a.y + BOX.height, b.x + BOX.width / 2, b.y]
    const bend = (y2 - y1) / 2
    return `<path class="edge" d="M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}"><title>${from} imports ${to}</title></path>`
  })
  const boxes = rows.flat().map((room) => {
    const { x, y } = places.get(room)
    const middle = x + BOX.width / 2
    return [
      `<rect class="box" x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="6"/>`,
      `<text class="name" x="${middle}" y="${y + 19}">${room}</text>`,
      `<text class="purpose" x="${middle}" y="${y + 34}">${PURPOSE[room]}</text>`,
    ].join('\n')
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="The rooms of src: each imports only from rooms below it">
<style>
:root { color-scheme: light dark }
.page { fill: #fff } .box { fill: #f4f6f8; stroke: #9aa7b4 } .edge { fill: none; stroke: #b3bec9; stroke-width: 1.2 }
text { text-anchor: middle; font-family: system-ui, sans-serif } .name { font-size: 13px; font-weight: 600; fill: #17222d } .purpose { font-size: 10px; fill: #52606d }
@media (prefers-color-scheme: dark) { .page { fill: #11161b } .box { fill: #1c242c; stroke: #4b5966 } .edge { stroke: #3d4954 } .name { fill: #e6ebf0 } .purpose { fill: #9aa7b4 } }
</style>
<rect class="page" width="${width}" height="${height}"/>
${edges.join('\n')}
${boxes.join('\n')}
</svg>
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(join(ROOT, TARGET), drawRooms())
