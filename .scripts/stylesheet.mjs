// A page's stylesheet: the palette that all pages share, and its own rules behind it.

import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const PALETTE = fileURLToPath(new URL('../src/sdk/palette.css', import.meta.url))

/** `file`: the page's own rules. */
export async function stylesheet(file) {
  const [palette, own] = await Promise.all([PALETTE, file].map((one) => readFile(one, 'utf8')))
  return `${palette}\n${own}`
}
