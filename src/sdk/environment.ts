// Probes for what the browser says about itself, its storage and its window, read without any library.

type HighEntropy = {
  platform: string
  platformVersion: string
  model: string
  architecture: string
  bitness: string
  mobile: boolean
  fullVersionList: { brand: string; version: string }[]
}

type UserAgentData = { getHighEntropyValues(hints: string[]): Promise<Partial<HighEntropy>> }

/** What `probeEvalLength` answers in every browser built on Chromium. */
export const chromiumEvalLength = 33

const voicesWaitMs = 150

/** User-Agent Client Hints with high entropy, or null where the browser has none. */
export async function probeUserAgentData(): Promise<HighEntropy | null> {
  const data = (navigator as Navigator & { userAgentData?: UserAgentData }).userAgentData
  if (!data) return null
  const hints = ['platformVersion', 'model', 'architecture', 'bitness', 'fullVersionList']
  const read = await data.getHighEntropyValues(hints)
  return {
    platform: read.platform ?? '',
    platformVersion: read.platformVersion ?? '',
    model: read.model ?? '',
    architecture: read.architecture ?? '',
    bitness: read.bitness ?? '',
    mobile: read.mobile ?? false,
    fullVersionList: (read.fullVersionList ?? []).map(({ brand, version }) => ({ brand, version })),
  }
}

export function probeWindow(): { inner: [number, number]; outer: [number, number] } {
  return { inner: [innerWidth, innerHeight], outer: [outerWidth, outerHeight] }
}

export async function probeMediaDevices(): Promise<Record<MediaDeviceKind, number> | null> {
  if (!navigator.mediaDevices?.enumerateDevices) return null
  const counts = { audioinput: 0, audiooutput: 0, videoinput: 0 }
  for (const device of await navigator.mediaDevices.enumerateDevices()) counts[device.kind] += 1
  return counts
}

/** Number of speech voices. The list is often filled only after the first question. */
export async function probeVoices(): Promise<number | null> {
  if (typeof speechSynthesis === 'undefined') return null
  const atOnce = speechSynthesis.getVoices().length
  if (atOnce > 0) return atOnce
  await new Promise<void>((resolve) => {
    setTimeout(resolve, voicesWaitMs)
    speechSynthesis.addEventListener?.('voiceschanged', () => resolve(), { once: true })
  })
  return speechSynthesis.getVoices().length
}

export async function probeStorage(): Promise<Record<'quota' | 'cookies' | 'localStorage' | 'indexedDB', unknown>> {
  const estimate = navigator.storage?.estimate ? await navigator.storage.estimate().catch(() => null) : null
  return {
    quota: estimate?.quota ?? null,
    cookies: attempt(() => navigator.cookieEnabled),
    localStorage: attempt(() => Boolean(localStorage)),
    indexedDB: attempt(() => Boolean(indexedDB)),
  }
}

export async function probePermissions(): Promise<{
  notifications: string | null
  notificationPermission: string | null
}> {
  // The two answers come from different parts of the browser: automation often changes only one of them.
  const status = navigator.permissions ? await navigator.permissions.query({ name: 'notifications' }) : null
  return {
    notifications: status?.state ?? null,
    notificationPermission: typeof Notification === 'undefined' ? null : Notification.permission,
  }
}

/** Length of the printed form of a built-in, which differs between engines. Nothing is evaluated. */
export function probeEvalLength(): number {
  // biome-ignore lint/security/noGlobalEval: only the function's printed length is read
  return eval.toString().length
}

/** Own names of an error, the wording of a null access and the notation of stack lines: they tell engines apart. */
export function probeErrorFormat(): string {
  try {
    const nothing = null as unknown as { missing: { member: unknown } }
    return String(nothing.missing.member)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    // Names and addresses on the line belong to the page and to our own build; only its notation is the engine's.
    const line = (error.stack ?? '').split('\n').find((text) => /:\d+:\d+/.test(text)) ?? ''
    const notation = /^\s*at /.test(line) ? 'at' : line.includes('@') ? '@' : 'other'
    return [Object.getOwnPropertyNames(error).sort().join(','), error.message, notation].join('|')
  }
}

/** Whether anything fine (mouse, pen) or coarse (finger) can point, and whether it can hover. */
export function probePointer(): { fine: boolean; coarse: boolean; hover: boolean } {
  const matches = (query: string) => matchMedia(query).matches
  return {
    fine: matches('(any-pointer: fine)'),
    coarse: matches('(any-pointer: coarse)'),
    hover: matches('(any-hover: hover)'),
  }
}

/** Selection colour and caption font of the system: a browser without a screen has none to ask. */
export function probeSystemStyle(): { highlight: string; font: string } {
  const element = document.createElement('i')
  element.style.font = 'caption'
  element.style.color = 'Highlight'
  document.documentElement.append(element)
  const { color, fontFamily, fontSize } = getComputedStyle(element)
  element.remove()
  return { highlight: color, font: `${fontFamily} ${fontSize}` }
}

/**
 * Whether a debugger listens, be it developer tools or a program that drives the browser: only then does an error given to
 * the console have its stack rendered at once. Ending a group writes nothing. Null in other browsers than Chromium.
 */
export function probeInspected(): boolean | null {
  const maker = Error as ErrorConstructor & { prepareStackTrace?: unknown }
  if (probeEvalLength() !== chromiumEvalLength) return null
  const kept = Object.getOwnPropertyDescriptor(maker, 'prepareStackTrace')
  let rendered = false
  try {
    maker.prepareStackTrace = () => {
      rendered = true
      return ''
    }
    // biome-ignore lint/suspicious/noConsole: nothing is written, and there is no other way to ask
    ;(console.groupEnd as (value: unknown) => void)(new Error())
  } finally {
    if (kept) Object.defineProperty(maker, 'prepareStackTrace', kept)
    else delete maker.prepareStackTrace
  }
  return rendered
}

function attempt(read: () => boolean): boolean {
  try {
    return read()
  } catch {
    return false
  }
}
