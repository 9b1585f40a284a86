// Builds the browser SDK (classic script and module) and its demo page into build/sdk/. Also runs by itself.

import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { MIT_LICENSE } from './mit-license.mjs'
import { stylesheet } from './stylesheet.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = `${root}src/sdk`
const out = `${root}build/sdk`

// The licences of what is bundled ask for their notice in every copy.
const notices = `/*!
Fingerpost SDK, Apache-2.0. Contains, under the MIT License:
FingerprintJS 5.2.0 and BotD 2.0.0, Copyright (c) FingerprintJS, Inc; detectIncognito 1.9.0, Copyright (c) Joe Rutkowski.
${MIT_LICENSE}
*/`

/** Resolves to the folder the files are in. */
export async function buildSdk() {
  await rm(out, { recursive: true, force: true })
  await bundle({ entry: 'iife.ts', format: 'iife', name: 'Fingerpost', file: 'sdk.js' })
  await bundle({ entry: 'esm.ts', format: 'es', file: 'sdk.mjs' })
  await bundle({ entry: 'demo/demo.ts', format: 'es', file: 'demo/demo.js' })
  const [, version] = /export const version = '([^']+)'/.exec(await readFile(`${source}/load.ts`, 'utf8'))
  await writeFile(`${out}/version.txt`, `${version}\n`)
  await mkdir(`${out}/demo`, { recursive: true })
  await cp(`${source}/demo/index.html`, `${out}/demo/index.html`)
  await writeFile(`${out}/demo/demo.css`, await stylesheet(`${source}/demo/demo.css`))
  return out
}

async function bundle({ entry, format, name, file }) {
  await build({
    configFile: false,
    root: source,
    logLevel: 'warn',
    publicDir: false,
    build: {
      target: 'es2018',
      outDir: out,
      emptyOutDir: false,
      sourcemap: 'hidden',
      minify: 'oxc',
      reportCompressedSize: false,
      rolldownOptions: { output: { minify: true, postBanner: notices } },
      lib: { entry: `${source}/${entry}`, formats: [format], name: name ?? 'unused', fileName: () => file },
    },
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildSdk()
