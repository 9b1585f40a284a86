// Looks for built-ins that were replaced by script: what a spoofing tool changed, it rarely changes everywhere.

import { withIframe } from '@fingerprintjs/fingerprintjs'

const watched: Record<string, readonly string[]> = {
  Navigator: [
    'userAgent',
    'platform',
    'languages',
    'language',
    'hardwareConcurrency',
    'deviceMemory',
    'webdriver',
    'plugins',
    'mimeTypes',
    'maxTouchPoints',
    'vendor',
    'userAgentData',
  ],
  Screen: ['width', 'height', 'availWidth', 'availHeight', 'colorDepth'],
  HTMLCanvasElement: ['toDataURL', 'getContext', 'toBlob'],
  CanvasRenderingContext2D: ['getImageData', 'fillText', 'measureText'],
  WebGLRenderingContext: ['getParameter', 'getExtension', 'getSupportedExtensions'],
  WebGL2RenderingContext: ['getParameter'],
  AudioBuffer: ['getChannelData'],
  Element: ['getBoundingClientRect'],
  HTMLElement: ['offsetWidth', 'offsetHeight'],
  HTMLIFrameElement: ['contentWindow'],
  Permissions: ['query'],
  Function: ['toString'],
  Date: ['getTimezoneOffset'],
}

const twins = [
  'userAgent',
  'platform',
  'vendor',
  'language',
  'languages',
  'hardwareConcurrency',
  'deviceMemory',
  'maxTouchPoints',
  'webdriver',
] as const

/** One string per inconsistency, `Interface.member:why`; empty in an untouched browser. */
export function probeLies(): Promise<string[]> {
  return withIframe((_, frame) => {
    const found: string[] = []
    for (const [owner, members] of Object.entries(watched)) {
      const prototype = prototypeOf(owner)
      if (!prototype) continue
      for (const member of members) {
        const why = inspect(prototype, member, frame)
        if (why) found.push(`${owner}.${member}:${why}`)
      }
    }
    // Removed rather than replaced.
    if (typeof navigator.webdriver !== 'boolean') found.push('Navigator.webdriver:missing')
    for (const member of shadowed(navigator, 'Navigator')) found.push(`Navigator.${member}:shadowed`)
    for (const member of shadowed(screen, 'Screen')) found.push(`Screen.${member}:shadowed`)
    for (const member of twins) {
      if (text(readMember(navigator, member)) !== text(readMember(frame.navigator, member))) {
        found.push(`Navigator.${member}:frame`)
      }
    }
    return found
  })
}

function inspect(prototype: object, member: string, frame: Window & typeof globalThis): string | null {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, member)
  const subject: unknown = descriptor?.get ?? descriptor?.value
  if (typeof subject !== 'function') return null
  // The frame's own toString: the page's may have been replaced to print what a native function prints.
  const source: string = frame.Function.prototype.toString.call(subject)
  const native = new RegExp(`^function (get )?${member}\\(\\) \\{\\s*\\[native code\\]\\s*\\}$`)
  if (!native.test(source)) return 'source'
  if (Object.getOwnPropertyNames(subject).some((name) => name !== 'length' && name !== 'name')) return 'properties'
  if (descriptor?.get && answersWithoutReceiver(descriptor.get, prototype)) return 'receiver'
  return null
}

// A native accessor refuses an object that is not of its interface; a replacement often answers anyway.
function answersWithoutReceiver(getter: () => unknown, prototype: object): boolean {
  try {
    getter.call(prototype)
    return true
  } catch {
    return false
  }
}

function shadowed(subject: object, owner: string): string[] {
  const prototype = prototypeOf(owner)
  return prototype ? Object.getOwnPropertyNames(subject).filter((name) => name in prototype) : []
}

function prototypeOf(owner: string): object | null {
  const made = readMember(window, owner)
  const prototype = typeof made === 'function' ? readMember(made, 'prototype') : null
  return typeof prototype === 'object' ? prototype : null
}

function readMember(subject: object, member: string): unknown {
  return (subject as Record<string, unknown>)[member]
}

function text(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : String(value)
}
