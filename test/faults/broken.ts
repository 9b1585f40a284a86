// Builds that break a promise on purpose. A harness that does not catch them would prove nothing by passing.

import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../helpers/server.ts'

export interface Fault {
  readonly promise: string
  /** Stands once in its module, however that is indented in the server. */
  readonly find: string
  readonly replace: string
  /** Of visits that can be repeated: what most shows that it is missing. */
  readonly nonceShare: number
}

export const FAULTS: readonly Fault[] = [
  {
    promise: 'accepted means durable',
    nonceShare: 0.5,
    find: 'return store(requestId, must(appends[partition], "a partition").add(accepted, accepted.record.length));',
    // The only answer of the ingress itself is 202. Only visits without a nonce get it here, which are never repeated.
    replace: `        if (nonce !== null) return store(requestId, appends[partition].add(accepted, accepted.record.length));
        setTimeout(() => void appends[partition].add(accepted, accepted.record.length), 200);
        waiting.stored(requestId);
        expired(requestId);
        return Promise.resolve();`,
  },
  {
    promise: 'a decision is durable before it is told',
    nonceShare: 1,
    // They are appended when the identifications they decide are durable, a flush later.
    find: 'const submitted = isAlone ? null : submit(decided);',
    replace: `        needs.reply(decided.replies, decided.replays);
        const submitted = null;`,
  },
  {
    promise: 'decisions are adopted, never remade',
    nonceShare: 0.3,
    find: '    decidedTo = to;\n            seq = record.seq;',
    replace: '                void to;\n            seq = record.seq;',
  },
  {
    promise: 'a range is inserted before it counts as inserted',
    nonceShare: 1,
    find: 'const rows = await insertParts(',
    replace: `    for (const { partition, after, upTo } of parts) {
        const guard = { source: SINK_POSITION, expect: after, next: upTo };
        await kv.commit([{ scope: partitionScope(partition), guard, drop: [SINK_MARK] }]);
        report.sunk(partition, upTo, 0);
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    const rows = await insertParts(`,
  },
  {
    promise: 'a nonce that was decided is remembered across a restart',
    nonceShare: 1,
    find: 'apply(item);\n            const ruleset = needs.ruleset(item.workspace, item.env);',
    replace:
      '            apply({ ...item, nonceHash: 0 });\n            const ruleset = needs.ruleset(item.workspace, item.env);',
  },
]

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const BUNDLED = /\.js$/

/** The bundles hold the modules line by line, each indented in a way of its own. */
const asPattern = (text: string): RegExp =>
  new RegExp(
    text
      .trim()
      .split(/\s+/)
      .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('\\s+'),
    'g',
  )

/**
 * Copies the server into a temporary folder with one text replaced, in each of its threads that has it. Returns its entry.
 * Throws when the text is not there, or is more than once.
 */
export function breakBuild({ find, replace, promise }: Fault): string {
  const dir = temporaryFolder()
  for (const shared of ['node_modules', 'package.json']) symlinkSync(join(ROOT, shared), join(dir, shared))
  mkdirSync(join(dir, 'build'))
  for (const shared of ['sdk', 'docs', 'console', 'build-info.json'])
    symlinkSync(join(ROOT, 'build', shared), join(dir, 'build', shared))
  const server = join(dir, 'build/server')
  cpSync(join(ROOT, 'build/server'), server, { recursive: true, filter: (path) => !path.endsWith('.map') })
  const pattern = asPattern(find)
  const isOnce: boolean[] = []
  for (const name of readdirSync(server).filter((each) => BUNDLED.test(each))) {
    const text = readFileSync(join(server, name), 'utf8')
    const times = text.match(pattern)?.length ?? 0
    if (times === 0) continue
    isOnce.push(times === 1)
    writeFileSync(
      join(server, name),
      text.replace(pattern, () => replace),
    )
  }
  if (isOnce.length === 0 || isOnce.includes(false)) {
    throw new Error(`the text to break "${promise}" is not once where it should be: adapt the fault to the code`)
  }
  return join(server, 'main.js')
}
