// Builds that break a promise on purpose. A harness that does not catch them would prove nothing by passing.

import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../helpers/server.ts'

export interface Fault {
  readonly promise: string
  /** Below build/src. */
  readonly file: string
  readonly find: string
  readonly replace: string
  /** Of visits that can be repeated: what most shows that it is missing. */
  readonly nonceShare: number
}

export const FAULTS: readonly Fault[] = [
  {
    promise: 'accepted means durable',
    nonceShare: 0.5,
    file: 'ingress/accept.js',
    find: '        return store(partition, meta.requestId, record);',
    // The only answer of the ingress itself is 202. Only visits without a nonce get it here, which are never repeated.
    replace: `        if (nonce !== null) return store(partition, meta.requestId, record);
        setTimeout(() => void appends[partition].add(record, record.length), 200);
        waiting.stored(meta.requestId);
        expired(meta.requestId);
        return Promise.resolve();`,
  },
  {
    promise: 'a decision is durable before it is told',
    nonceShare: 1,
    file: 'engine/engine.js',
    find: '        for (const [i, record] of decided.records.entries()) {\n            const after = seq;\n            seq = await appendFenced',
    replace: `        needs.reply(decided.replies, decided.replays);
        await new Promise((resolve) => setTimeout(resolve, 50));
        for (const [i, record] of decided.records.entries()) {
            const after = seq;
            seq = await appendFenced`,
  },
  {
    promise: 'decisions are adopted, never remade',
    nonceShare: 1,
    file: 'engine/engine.js',
    find: '                decidedTo = to;\n            seq = record.seq;',
    replace: '                void to;\n            seq = record.seq;',
  },
  {
    promise: 'a range is inserted before it counts as inserted',
    nonceShare: 1,
    file: 'sink/sink.js',
    find: '    const rows = await insertRows(',
    replace: `    await kv.commit([{ scope, guard: { source: SINK_POSITION, expect: mark.after, next: mark.upTo }, drop: [SINK_MARK] }]);
    report.sunk(partition, mark.upTo, 0);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const rows = await insertRows(`,
  },
  {
    promise: 'a nonce that was decided is remembered across a restart',
    nonceShare: 1,
    file: 'engine/partition.js',
    find: '        if (item.nonceHash !== 0)\n            nonces.add(item);',
    replace: '        if (item.nonceHash !== 0 && adopting.length === 0)\n            nonces.add(item);',
  },
]

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const NOT_RUN = /\.map$/

/** A copy of what runs, and how to mend the file that is broken in it. */
let copy: { readonly dir: string; mend: () => void } | null = null

function copyBuild() {
  const dir = temporaryFolder()
  for (const shared of ['node_modules', 'package.json']) symlinkSync(join(ROOT, shared), join(dir, shared))
  mkdirSync(join(dir, 'build'))
  for (const shared of ['sdk', 'build-info.json']) symlinkSync(join(ROOT, 'build', shared), join(dir, 'build', shared))
  cpSync(join(ROOT, 'build/src'), join(dir, 'build/src'), { recursive: true, filter: (path) => !NOT_RUN.test(path) })
  return { dir, mend: () => undefined }
}

/**
 * Replaces one text in a copy of the modules that the server is bundled of, which run as they are. There is one copy: what an earlier call broke is whole again. Returns its entry.
 * Throws when the text is not there once.
 */
export function breakBuild({ file, find, replace, promise }: Fault): string {
  copy ??= copyBuild()
  const { dir } = copy
  copy.mend()
  const path = join(dir, 'build/src', file)
  const text = readFileSync(path, 'utf8')
  const parts = text.split(find)
  if (parts.length !== 2) {
    throw new Error(
      `the text to break "${promise}" stands ${parts.length - 1} times in ${file}: adapt the fault to the code`,
    )
  }
  writeFileSync(path, parts.join(replace))
  copy.mend = () => writeFileSync(path, text)
  return join(dir, 'build/src/main.js')
}
