// Builds the console into build/console/: one page, and scripts and styles whose names change with their contents. Also runs by itself.

import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { MIT_LICENSE } from './mit-license.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = `${root}src/console`
const out = `${root}build/console`

// The licences of what is bundled ask for their notice in every copy.
const notices = `/*!
Fingerpost console, Apache-2.0. Contains preact 10.29.8 and @preact/signals 2.11.4, Copyright (c) 2015-present Jason Miller and
2022-present Preact Team, and uPlot 1.6.32, Copyright (c) 2024 Leon Sorokin, all under the MIT License; wouter-preact 3.11.1 is under The Unlicense.
${MIT_LICENSE}
*/`

/** Resolves to the folder the files are in. */
export async function buildConsole() {
  await build({
    configFile: false,
    root: source,
    base: '/console/',
    logLevel: 'warn',
    publicDir: false,
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      target: 'es2022',
      outDir: out,
      emptyOutDir: true,
      sourcemap: false,
      reportCompressedSize: false,
      // The policy allows no inline script, and every browser that the console supports preloads modules by itself.
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      rolldownOptions: {
        output: {
          entryFileNames: 'assets/[name]-[hash].js',
          chunkFileNames: 'assets/[name]-[hash].js',
          assetFileNames: 'assets/[name]-[hash][extname]',
          postBanner: (chunk) => (chunk.isEntry ? notices : ''),
        },
      },
    },
  })
  return out
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildConsole()
