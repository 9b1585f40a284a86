// Reference: the hash of everything that is meant to stay the same, as open-source fingerprinting libraries make it, alone
// or behind a token.

import type { Component } from '../../src/domain/identify.ts'
import { type Answer, createStorages, type Reference } from './answer.ts'
import type { Visit } from './population.ts'

// The User-Agent and the pixel ratio are left out because they change; canvas where browsers draw noise.
const STABLE = [
  'platform',
  'vendor',
  'languages',
  'timezone',
  'dateTimeLocale',
  'hardwareConcurrency',
  'deviceMemory',
  'architecture',
  'screenResolution',
  'colorDepth',
  'colorGamut',
  'hdr',
  'touchSupport',
  'audio',
  'math',
  'webGlBasics',
  'webGlExtensions',
  'fonts',
  'plugins',
]

export const componentIn = (visit: Pick<Visit, 'body'>, name: string): unknown =>
  (visit.body.components as Readonly<Record<string, Component>> | undefined)?.[name]?.value

/** All stable values as one text. */
export function stableText(visit: Visit): string {
  const vendor = componentIn(visit, 'vendor')
  const canvas = vendor === 'Google Inc.' ? JSON.stringify(componentIn(visit, 'canvas')) : ''
  return STABLE.map((name) => JSON.stringify(componentIn(visit, name))).join('|') + canvas
}

export function createExactHash(withToken: boolean): Reference {
  const ids = new Map<string, string>()
  const storages = createStorages()

  function byHash(visit: Visit): string {
    const text = stableText(visit)
    const id = ids.get(text) ?? `hash-${ids.size}`
    ids.set(text, id)
    return id
  }

  return {
    name: withToken ? 'exact hash + token' : 'exact hash',
    answer(visit): Answer {
      const id = (withToken ? storages.read(visit) : null) ?? byHash(visit)
      storages.write(visit, id)
      return { id, confidence: null }
    },
  }
}
