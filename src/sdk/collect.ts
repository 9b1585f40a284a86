// The table of everything collected from a page: one line per name of the component vocabulary.

import * as botd from '@fingerprintjs/botd'
import { getUnstableAudioFingerprint, murmurX64Hash128, sources } from '@fingerprintjs/fingerprintjs'
import { type Probe, runProbes, waitMs } from './budget.ts'
import { probeCanvas, probeCanvasNoise } from './canvas.ts'
import {
  probeErrorFormat,
  probeEvalLength,
  probeInspected,
  probeMediaDevices,
  probePermissions,
  probePointer,
  probeStorage,
  probeSystemStyle,
  probeUserAgentData,
  probeVoices,
  probeWindow,
} from './environment.ts'
import { probeFontPreferences } from './font-preferences.ts'
import { probeLies } from './lies.ts'
import type { Collection } from './types.ts'
import { probeWorker, type WorkerChoice } from './worker.ts'

type WebGlCache = Parameters<typeof sources.webGlBasics>[0]

const idleWaitMs = 50

export type CollectOptions = {
  budgetMs: number
  /** Address of the SDK's classic script, tried as a worker. */
  worker: WorkerChoice
  /** Answers the private-mode check, which the caller may have started early: it takes longest. */
  privateMode: () => Promise<unknown>
}

/** Collects every component within the budget. Never rejects: what fails or is late becomes an error entry. */
export async function collect({ budgetMs, worker, privateMode }: CollectOptions): Promise<Collection> {
  const start = performance.now()
  await pageIdle()
  const probes = listProbes(worker, privateMode)
  const { detectors, ...components } = await runProbes(probes, budgetMs - (performance.now() - start))
  return {
    components,
    automation: {
      webdriver: navigator.webdriver === true,
      detectors: detectors && 'value' in detectors ? (detectors.value as Record<string, unknown>) : { ...detectors },
    },
  }
}

// First those that only wait, so that they wait while the others compute; then what costs next to nothing and the graphics
// card, which the service files devices by and is therefore always read; last those that compute.
function listProbes(worker: WorkerChoice, privateMode: () => Promise<unknown>): Probe[] {
  const webgl: WebGlCache = { cache: {} }
  return [
    { name: 'incognito', share: 1, run: privateMode },
    { name: 'worker', share: 1, run: () => probeWorker(worker) },
    { name: 'userAgentData', share: 0.8, run: probeUserAgentData },
    { name: 'storage', share: 0.8, run: probeStorage },
    { name: 'permissions', share: 0.8, run: probePermissions },
    { name: 'mediaDevices', share: 0.8, run: probeMediaDevices },
    { name: 'userAgent', run: () => navigator.userAgent },
    { name: 'platform', run: sources.platform },
    { name: 'vendor', run: sources.vendor },
    { name: 'languages', run: sources.languages },
    { name: 'timezone', run: sources.timezone },
    { name: 'dateTimeLocale', run: () => positive(sources.dateTimeLocale()) },
    { name: 'hardwareConcurrency', run: () => navigator.hardwareConcurrency },
    { name: 'deviceMemory', run: sources.deviceMemory },
    { name: 'osCpu', run: sources.osCpu },
    { name: 'architecture', run: sources.architecture },
    { name: 'screenResolution', run: () => [screen.width, screen.height] },
    { name: 'devicePixelRatio', run: () => devicePixelRatio },
    { name: 'colorDepth', run: sources.colorDepth },
    { name: 'colorGamut', run: sources.colorGamut },
    { name: 'hdr', run: sources.hdr },
    { name: 'contrast', run: sources.contrast },
    { name: 'reducedMotion', run: sources.reducedMotion },
    { name: 'reducedTransparency', run: sources.reducedTransparency },
    { name: 'invertedColors', run: sources.invertedColors },
    { name: 'forcedColors', run: sources.forcedColors },
    { name: 'monochrome', run: sources.monochrome },
    { name: 'pdfViewerEnabled', run: sources.pdfViewerEnabled },
    { name: 'window', run: probeWindow },
    { name: 'touchSupport', run: sources.touchSupport },
    { name: 'pointer', run: probePointer },
    { name: 'inspected', run: probeInspected },
    { name: 'math', run: sources.math },
    { name: 'plugins', run: sources.plugins },
    { name: 'evalLength', run: probeEvalLength },
    { name: 'errorFormat', run: probeErrorFormat },
    { name: 'webGlBasics', run: () => positive(sources.webGlBasics(webgl)) },
    { name: 'canvas', share: 1, run: probeCanvas },
    { name: 'canvasNoise', share: 1, run: probeCanvasNoise },
    { name: 'audio', share: 0.8, run: probeAudio },
    { name: 'audioBaseLatency', run: probeAudioLatency },
    { name: 'fonts', share: 0.8, run: sources.fonts },
    { name: 'fontPreferences', share: 0.8, run: probeFontPreferences },
    { name: 'systemStyle', share: 0.8, run: probeSystemStyle },
    { name: 'lies', share: 0.8, run: probeLies },
    { name: 'screenFrame', share: 0.8, run: () => sources.screenFrame()() },
    { name: 'detectors', share: 1, run: probeDetectors },
    { name: 'webGlExtensions', share: 1, run: () => probeWebGlExtensions(webgl) },
    { name: 'voices', share: 0.8, run: probeVoices },
  ]
}

async function probeAudio(): Promise<number> {
  const rendering = getUnstableAudioFingerprint()
  return positive(typeof rendering === 'function' ? await rendering() : rendering)
}

function probeWebGlExtensions(webgl: WebGlCache): { extensions: string[]; parametersHash: string } {
  const read = positive(sources.webGlExtensions(webgl))
  const { contextAttributes, parameters, shaderPrecisions, extensionParameters } = read
  return {
    extensions: read.extensions ?? [],
    parametersHash: murmurX64Hash128(
      [contextAttributes, parameters, shaderPrecisions, extensionParameters].map((list) => list.join(';')).join('|'),
    ),
  }
}

// Null where asking would print a warning, and where there is none.
function probeAudioLatency(): number | null {
  const seconds = sources.audioBaseLatency()
  return seconds < 0 ? null : seconds
}

// Not through the library's load(): that one carries a request home, which must not even be in our bundle.
async function probeDetectors(): Promise<Record<string, unknown>> {
  const [detections] = botd.detect(await botd.collect(botd.sources), botd.detectors)
  return { ...detections }
}

// The libraries answer a negative number where the browser lacks something.
function positive<T>(value: T): Exclude<T, -1 | -2 | -3> {
  if (typeof value === 'number' && value < 0) throw new Error('unsupported')
  return value as Exclude<T, -1 | -2 | -3>
}

// Measurements taken while the page is still busy starting vary from visit to visit.
function pageIdle(): Promise<void> {
  if (typeof requestIdleCallback === 'undefined') return waitMs(idleWaitMs)
  return new Promise((resolve) => requestIdleCallback(() => resolve(), { timeout: idleWaitMs * 2 }))
}
