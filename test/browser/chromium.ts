// Starts a real Chromium with a profile folder of its own and ends it the way a user does, so that storage reaches the disk.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium } from 'playwright-core'

export const executable = process.env.CHROMIUM ?? '/usr/bin/chromium'
const startMsMax = 240_000
const exitMsMax = 120_000

/** No first-run pages, no questions, and nothing but this machine. */
export const quietFlags = [
  '--no-sandbox',
  '--disable-quic',
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--password-store=basic',
  // Nothing but this machine resolves: a request to anywhere else fails here rather than leaving.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
]

export type Chromium = {
  /** The normal profile, kept in the profile folder. */
  context: BrowserContext
  /** A fresh private window; its storage dies with it. */
  openPrivate(): Promise<BrowserContext>
  close(): Promise<void>
}

export async function makeFolder(name: string): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), `fingerpost-${name}-`))
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }) }
}

/** Starts the browser on a profile folder; extra flags are command-line switches. */
export async function startChromium(profileDir: string, flags: readonly string[] = []): Promise<Chromium> {
  const args = [
    '--headless=new',
    '--disable-gpu',
    ...quietFlags,
    ...flags,
    `--user-data-dir=${profileDir}`,
    '--remote-debugging-port=0',
    'about:blank',
  ]
  const child = spawn(executable, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let browser: Browser
  try {
    browser = await chromium.connectOverCDP(await readDebuggerUrl(child))
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  const context = browser.contexts()[0]
  if (!context) throw new Error('the browser has no default context')
  return {
    context,
    openPrivate: () => browser.newContext({ viewport: null }),
    async close() {
      const exited = new Promise<void>((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) resolve()
        else child.once('exit', () => resolve())
      })
      const session = await browser.newBrowserCDPSession()
      await session.send('Browser.close').catch(() => undefined)
      const timer = setTimeout(() => child.kill('SIGKILL'), exitMsMax)
      await exited
      clearTimeout(timer)
      await browser.close().catch(() => undefined)
    },
  }
}

function readDebuggerUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = ''
    const timer = setTimeout(() => reject(new Error(`Chromium did not start: ${output.slice(-2000)}`)), startMsMax)
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`Chromium ended with ${code}: ${output.slice(-2000)}`)))
    child.stderr?.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-10_000)
      const match = /DevTools listening on (ws:\/\/\S+)/.exec(output)
      if (!match?.[1]) return
      clearTimeout(timer)
      resolve(match[1])
    })
  })
}
