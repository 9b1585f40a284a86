// The worker probe: the same questions asked outside the page, where spoofing scripts seldom reach.

import { trustedUrl } from './trusted.ts'

export const workerName = 'fingerpost'

export type WorkerValue = {
  userAgent: string
  platform: string
  languages: string[]
  timezone: string
  hardwareConcurrency: number | null
  deviceMemory: number | null
  webGlRenderer: string | null
}

/** True inside a worker that this SDK started, never in a customer's own worker that happens to import it. */
export function isOwnWorker(): boolean {
  return typeof document === 'undefined' && typeof self === 'object' && self.name === workerName
}

/** Runs inside the worker. Must not refer to anything outside itself: it also travels as text. */
export function readInWorker(): WorkerValue {
  const nav = navigator as Navigator & { deviceMemory?: number }
  let webGlRenderer: string | null = null
  try {
    const gl = new OffscreenCanvas(1, 1).getContext('webgl')
    if (gl) {
      const extension = /Firefox/.test(nav.userAgent) ? null : gl.getExtension('WEBGL_debug_renderer_info')
      webGlRenderer = String(gl.getParameter(extension ? extension.UNMASKED_RENDERER_WEBGL : gl.RENDERER))
    }
  } catch {
    webGlRenderer = null
  }
  return {
    userAgent: nav.userAgent,
    platform: nav.platform,
    languages: [].slice.call(nav.languages),
    timezone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
    hardwareConcurrency: nav.hardwareConcurrency || null,
    deviceMemory: nav.deviceMemory || null,
    webGlRenderer,
  }
}

export type WorkerChoice = { url: string; mode: 'auto' | 'blob' | 'off' }

/**
 * Asks a worker: the SDK's own file, where it is of the page's origin (browsers run no worker of another one). Else, where the site said
 * `blob`, a text of ours: content policies must allow `worker-src blob:` for it. Rejects when none may run.
 */
export async function probeWorker({ url, mode }: WorkerChoice): Promise<WorkerValue> {
  if (typeof Worker === 'undefined') throw new Error('unsupported')
  if (mode === 'off') throw new Error('off')
  if (new URL(url).origin === location.origin) {
    try {
      return await ask(url)
    } catch {
      // The file may not be reachable under this address on the page's origin.
    }
  }
  if (mode !== 'blob') throw new Error('other_origin')
  const source = `postMessage((${readInWorker.toString()})())`
  const blobUrl = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }))
  try {
    return await ask(blobUrl)
  } finally {
    URL.revokeObjectURL(blobUrl)
  }
}

function ask(url: string): Promise<WorkerValue> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(trustedUrl(url), { name: workerName })
    worker.onmessage = (event: MessageEvent<WorkerValue>) => {
      worker.terminate()
      resolve(event.data)
    }
    worker.onerror = (event) => {
      event.preventDefault()
      worker.terminate()
      reject(new Error('blocked'))
    }
  })
}
