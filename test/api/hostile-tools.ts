// What hostile requests have in common: the members and names they try, how they are sent, and what is wrong with an answer.

import { type Answer, browserBody } from '../helpers/client.ts'
import * as shapes from '../helpers/shapes.ts'

const AT_ONCE = 16
const json = JSON.stringify

/** Runs `work` on every item, several at once. */
export async function forEach<T>(items: readonly T[], work: (item: T, index: number) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < items.length) {
      const index = next++
      await work(items[index] as T, index)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
}

/** Sends and says what is wrong with the answer; null when nothing is. Whoever waits a minute got no answer. */
export async function fault(ask: () => Promise<Answer>): Promise<{ answer: Answer | null; wrong: string | null }> {
  let answer: Answer
  try {
    answer = await ask()
  } catch (error) {
    return { answer: null, wrong: `no answer: ${error}` }
  }
  if (answer.status >= 500) return { answer, wrong: `${answer.status} ${answer.text}` }
  if (!shapes.CALL_ID.test(answer.headers.get('x-request-id') ?? '')) return { answer, wrong: 'no call id' }
  if (answer.status < 300) return { answer, wrong: null }
  const faults = shapes.errorFaults(answer.status, answer.body)
  if (faults.length > 0) return { answer, wrong: `${answer.status} ${faults}` }
  return { answer, wrong: answer.text.length > 1_000 ? 'echoes too much' : null }
}

/** A text for the name of a test: short, one line, plain characters. */
export const show = (text: string): string =>
  json(text.slice(0, 60)).replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
const NAMES = Object.keys(browserBody().components)
export const VOCABULARY = [
  ...NAMES,
  ...[
    'userAgentData',
    'dateTimeLocale',
    'osCpu',
    'architecture',
    'screenFrame',
    'colorGamut',
    'hdr',
    'window',
    'canvasNoise',
  ],
  ...[
    'webGlExtensions',
    'fontPreferences',
    'plugins',
    'mediaDevices',
    'voices',
    'storage',
    'permissions',
    'incognito',
    'worker',
    'errorFormat',
  ],
]

/** Every member that takes a text, as the body that has `text` there. */
export const MEMBERS: Readonly<Record<string, (text: string) => object>> = {
  nonce: (nonce) => ({ nonce }),
  'sdk.name': (name) => ({ sdk: { name, version: '1' } }),
  'sdk.version': (version) => ({ sdk: { name: 'js', version } }),
  storageToken: (storageToken) => ({ storageToken }),
  linkedId: (linkedId) => ({ linkedId }),
  email: (email) => ({ email }),
  'email.local': (text) => ({ email: `${text}@hostile.example` }),
  'email.host': (text) => ({ email: `somebody@${text}` }),
  'native.platform': (platform) => ({ native: { platform } }),
  'native.model': (model) => ({ native: { platform: 'android', model } }),
  'native.osVersion': (osVersion) => ({ native: { platform: 'ios', osVersion } }),
  'native.appVersion': (appVersion) => ({ native: { platform: 'ios', appVersion } }),
  'mock.at': (at) => ({ mock: { at } }),
  'mock.ip': (ip) => ({ mock: { ip } }),
  'mock.country': (country) => ({ mock: { country } }),
  'mock.provider': (provider) => ({ mock: { signals: { vpn: { detected: true, provider } } } }),
  'mock.type': (type) => ({ mock: { signals: { bot: { detected: true, type } } } }),
  ip: (ip) => ({ ip }),
  userAgent: (userAgent) => ({ userAgent }),
  'headers.name': (text) => ({ headers: { [text]: 'x' } }),
  'headers.value': (text) => ({
    headers: { 'user-agent': text, 'sec-ch-ua': text, 'sec-ch-ua-platform': text, via: text },
  }),
  member: (text) => ({ [text]: 1 }),
}

/** The value as it must come back: halves of surrogate pairs replaced, in names too. */
export function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name.toWellFormed(), wellFormed(item)]))
}

export const metric = (text: string, name: string) =>
  [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)`, 'gm'))].reduce((sum, [, n]) => sum + Number(n), 0)

export function isJson(line: string): boolean {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}
