// The link that opens the demo page, as the command prints it, and what the page asks, which no document describes.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))

/** Of the server that has this data folder. */
export async function newDemoLink(dataDir: string): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, FINGERPOST_DATA_DIR: dataDir }
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'demo'], { env })
  return stdout.trim()
}

/** One call of the page. */
export async function askDemo(
  url: string,
  method: string,
  path: string,
  { cookie = '', body, type = 'application/json' }: { cookie?: string; body?: object; type?: string } = {},
) {
  const response = await fetch(`${url}/demo/api${path}`, {
    method,
    headers: {
      ...(cookie === '' ? {} : { Cookie: cookie }),
      ...(body === undefined ? {} : { 'Content-Type': type }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}
