// The hardware key: where a visit without a token is decided. It runs for every such request on the accepting thread,
// so it reads only what it needs; and it must outlive anything a user can change short of buying another device.

import type { Env } from '../domain/event.ts'
import type { IdentifyBody } from '../domain/identify.ts'
import { hash32 } from '../domain/ids.ts'
import { isPadAsMac } from './attributes.ts'
import { GPU_CHARS_MAX } from './gpu.ts'
import { nativeIdOf } from './native-id.ts'
import { type Parsers, plainParsers } from './parsers.ts'
import { componentOf, objectOf, textOf, wholeOf } from './read.ts'

function gpuName(body: IdentifyBody, parsers: Parsers): string {
  const webgl = objectOf(componentOf(body.components, 'webGlBasics'))
  const text = textOf(webgl?.rendererUnmasked, GPU_CHARS_MAX) ?? textOf(webgl?.renderer, GPU_CHARS_MAX)
  return text === null ? '' : parsers.gpu(text).name
}

function appleExtra(body: IdentifyBody): string {
  const size = componentOf(body.components, 'screenResolution')
  const [a, b] = Array.isArray(size) ? [wholeOf(size[0], 1, 32_767) ?? 0, wholeOf(size[1], 1, 32_767) ?? 0] : [0, 0]
  const languages = componentOf(body.components, 'languages')
  const first: unknown = Array.isArray(languages) ? languages[0] : null
  const language = textOf(Array.isArray(first) ? first[0] : first, 35) ?? ''
  return `|${Math.max(a, b)}x${Math.min(a, b)}|${language}`
}

/**
 * The id an app sends; else OS, browser family, GPU and model as one text; on iOS, where those are all alike, also screen and language, which
 * stay when a phone moves between home and carrier, or travels. Equal before and after a restart, a private window, a browser update or
 * another display scale.
 */
export function hardwareKey(
  body: IdentifyBody,
  headers: Readonly<Record<string, string>>,
  userAgent: string,
  parsers: Parsers = plainParsers,
): string {
  const text = userAgent === '' ? (textOf(componentOf(body.components, 'userAgent'), 1_024) ?? '') : userAgent
  const ua = parsers.userAgent(text)
  const native = body.native
  const nativeId = nativeIdOf(native)
  if (nativeId !== null) return nativeId.text
  const touch = objectOf(componentOf(body.components, 'touchSupport'))
  const apple = native?.platform === 'ios' || ua.os === 'iOS' || isPadAsMac(ua, wholeOf(touch?.maxTouchPoints, 0, 256))
  const os = native?.platform === 'android' ? 'Android' : apple ? 'iOS' : ua.os
  const family = native !== undefined && ua.os === 'other' ? 'app' : ua.family
  const hints = objectOf(componentOf(body.components, 'userAgentData'))
  const hinted = textOf(hints?.model, 64) ?? textOf(headers['sec-ch-ua-model']?.replaceAll('"', ''), 64)
  const model = textOf(native?.model, 64) ?? hinted ?? ua.model ?? ''
  const key = `${os}|${family}|${gpuName(body, parsers)}|${model}`
  return apple ? key + appleExtra(body) : key
}

/** Where a visit without a token of this hardware is decided. */
export const hardwarePartition = (workspace: string, env: Env, hardware: string, partitions: number): number =>
  hash32(`${workspace}/${env}/${hardware}`) % partitions
