// Starts browsers the way a person does: a program, a profile and an address, with no protocol that could drive them.

import { type ChildProcess, spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { executable, quietFlags } from './chromium.ts'

export type Kind = 'chromium' | 'firefox'

export type Start = {
  /** The profile's folder, which lives on after the browser. */
  profileDir: string
  url: string
  /** For DISPLAY; without one the browser starts headless. */
  display: string | null
  /** As a person set them up: `cs-CZ,cs,en`. */
  languages?: string
  isPrivate?: boolean
  flags?: readonly string[]
  env?: Readonly<Record<string, string>>
  /** Firefox preferences beyond the usual. */
  prefs?: Readonly<Record<string, string | number | boolean>>
}

const executables: Readonly<Record<Kind, string>> = {
  chromium: executable,
  firefox: process.env.FIREFOX ?? 'firefox-esr',
}
/** A browser that is killed may lose what pages stored. */
const exitMsMax = 120_000

/** The same for Firefox as the flags of Chromium. */
const firefoxPrefs: Start['prefs'] = {
  'app.update.enabled': false,
  'app.normandy.enabled': false,
  'browser.aboutwelcome.enabled': false,
  'browser.newtab.preload': false,
  'browser.safebrowsing.downloads.enabled': false,
  'browser.safebrowsing.malware.enabled': false,
  'browser.safebrowsing.phishing.enabled': false,
  'browser.sessionstore.resume_from_crash': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'browser.topsites.contile.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'dom.ipc.processPrelaunch.enabled': false,
  'extensions.getAddons.cache.enabled': false,
  'extensions.systemAddon.update.enabled': false,
  'media.gmp-manager.updateEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  // A proxy where nobody listens; loopback addresses never go through one.
  'network.proxy.type': 1,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': 9,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9,
  'services.settings.server': 'data:,',
  'termsofuse.bypassNotification': true,
  'toolkit.telemetry.reportingpolicy.firstRun': false,
}

export type Running = {
  child: ChildProcess
  /** Ends it as logging out does, so that storage reaches the disk. */
  close(): Promise<void>
  output(): string
}

/** Starts a browser; it is up when its page says so. */
export async function startByHand(kind: Kind, start: Start): Promise<Running> {
  const args = kind === 'chromium' ? chromiumArgs(start) : await firefoxArgs(start)
  const env: NodeJS.ProcessEnv = { ...process.env, HOME: start.profileDir, ...start.env }
  if (start.display === null) delete env.DISPLAY
  else env.DISPLAY = start.display
  const child = spawn(executables[kind], args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  let output = ''
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-20_000)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  const exited = new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => resolve())
  })
  exited.catch(() => undefined)
  return {
    child,
    output: () => output,
    async close() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), exitMsMax)
      await exited
      clearTimeout(timer)
    },
  }
}

function chromiumArgs({ profileDir, url, display, languages, isPrivate, flags = [] }: Start): string[] {
  const window = display === null ? ['--headless=new'] : []
  const secrecy = isPrivate ? ['--incognito'] : []
  const speech = languages ? [`--accept-lang=${languages}`] : []
  return [...quietFlags, ...window, ...secrecy, ...speech, ...flags, `--user-data-dir=${profileDir}`, url]
}

async function firefoxArgs(start: Start): Promise<string[]> {
  const { profileDir, url, display, languages, isPrivate, flags = [], prefs = {} } = start
  const speech = languages ? { 'intl.accept_languages': languages } : {}
  const lines = Object.entries({ ...firefoxPrefs, ...speech, ...prefs }).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`,
  )
  await writeFile(join(profileDir, 'user.js'), lines.join(''))
  const window = display === null ? ['--headless'] : []
  const opening = isPrivate ? ['--private-window', url] : [url]
  return ['--no-remote', ...window, ...flags, '--profile', profileDir, ...opening]
}
