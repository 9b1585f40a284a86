// Reference: the rule-based linking of FP-Stalker (Vastel, Laperdrix, Rudametkin, Rouvoy: "FP-Stalker: Tracking Browser
// Fingerprint Evolutions", IEEE S&P 2018, section IV), written from the paper; and a variant with the attributes that have
// taken the place of plugins since, behind a token.

import { parseUserAgent } from '../../src/identity/user-agent.ts'
import { createStorages, type Reference } from './answer.ts'
import { componentIn } from './exact-hash.ts'
import type { Visit } from './population.ts'

interface Fingerprint {
  /** System, browser, platform and all that must never change. */
  readonly fixed: string
  readonly version: number
  /** May change a little, at most two of them. */
  readonly similar: readonly string[]
  /** May change, at most one of them. */
  readonly free: readonly string[]
  readonly text: string
}

interface Known {
  readonly print: Fingerprint
  /** When each id was last seen that has this among its last two. */
  readonly ids: Map<string, number>
}

const RATIO_MIN = 0.75
const SIMILAR_CHANGES_MAX = 2
const FREE_CHANGES_MAX = 1
const PRINTS_PER_ID = 2
const FORGOTTEN_MS = 30 * 86_400_000

/** Similarity of two texts: twice their longest common subsequence over the sum of their lengths. */
export function similarity(a: string, b: string): number {
  let row = new Uint16Array(b.length + 1)
  for (let i = 0; i < a.length; i++) {
    const next = new Uint16Array(b.length + 1)
    const letter = a.charCodeAt(i)
    for (let j = 0; j < b.length; j++) {
      const same = letter === b.charCodeAt(j)
      next[j + 1] = same ? (row[j] as number) + 1 : Math.max(next[j] as number, row[j + 1] as number)
    }
    row = next
  }
  return a.length + b.length === 0 ? 1 : (2 * (row[b.length] as number)) / (a.length + b.length)
}

function createSimilar() {
  const known = new Map<string, boolean>()
  return (a: string, b: string): boolean => {
    const key = `${a}\n${b}`
    const found = known.get(key) ?? similarity(a, b) > RATIO_MIN
    known.set(key, found)
    return found
  }
}

function fingerprintOf(visit: Visit, modern: boolean): Fingerprint {
  const text = (name: string) => JSON.stringify(componentIn(visit, name)) ?? ''
  const header = (name: string) => visit.headers[name] ?? ''
  const agent = header('user-agent')
  const { os, family, major } = parseUserAgent(agent)
  const gl = (componentIn(visit, 'webGlBasics') ?? {}) as Readonly<Record<string, string>>
  const storage = (componentIn(visit, 'storage') ?? {}) as Readonly<Record<string, unknown>>
  const more = ['fonts', 'hardwareConcurrency', 'deviceMemory', 'audio']
  const fixed = [
    os,
    family,
    text('platform'),
    text('canvas'),
    String(storage.cookies),
    String(storage.localStorage),
    ...(modern ? more.map(text) : []),
  ].join('|')
  const similar = [
    agent,
    gl.vendorUnmasked || (gl.vendor ?? ''),
    gl.rendererUnmasked || (gl.renderer ?? ''),
    text('plugins'),
    header('accept-language'),
    header('accept'),
  ]
  const free = [text('screenResolution'), header('accept-encoding'), text('timezone')]
  return { fixed, version: major ?? 0, similar, free, text: [fixed, ...similar, ...free].join('\n') }
}

export function createFpStalker(modern: boolean): Reference {
  const buckets = new Map<string, Map<string, Known>>()
  const lastOf = new Map<string, Known[]>()
  const storages = createStorages()
  const similar = createSimilar()
  let drawn = 0

  function alive(known: Known, atMs: number): string[] {
    for (const [id, lastMs] of known.ids) if (atMs - lastMs > FORGOTTEN_MS) known.ids.delete(id)
    return [...known.ids.keys()]
  }

  function follows(known: Fingerprint, seen: Fingerprint): boolean {
    if (known.version > seen.version) return false
    let changes = 0
    for (let i = 0; i < seen.free.length; i++) if (known.free[i] !== seen.free[i]) changes++
    if (changes > FREE_CHANGES_MAX) return false
    let alike = 0
    for (let i = 0; i < seen.similar.length; i++) {
      const [a, b] = [known.similar[i] as string, seen.similar[i] as string]
      if (a === b) continue
      if (++alike > SIMILAR_CHANGES_MAX || !similar(a, b)) return false
    }
    return true
  }

  /** The one id that this can be, or null. */
  function link(print: Fingerprint, atMs: number): string | null {
    const bucket = buckets.get(print.fixed)
    const exact = bucket?.get(print.text)
    const same = exact === undefined ? [] : alive(exact, atMs)
    if (same.length > 0) return same.length === 1 ? (same[0] as string) : null
    const found = new Set<string>()
    for (const known of bucket?.values() ?? []) {
      if (known.print.text === print.text || !follows(known.print, print)) continue
      for (const id of alive(known, atMs)) found.add(id)
      if (found.size > 1) return null
    }
    return found.values().next().value ?? null
  }

  function remember(id: string, print: Fingerprint, atMs: number): void {
    const bucket = buckets.get(print.fixed) ?? new Map<string, Known>()
    buckets.set(print.fixed, bucket)
    const known = bucket.get(print.text) ?? { print, ids: new Map<string, number>() }
    bucket.set(print.text, known)
    const last = [known, ...(lastOf.get(id) ?? []).filter((one) => one !== known)]
    for (const old of last.splice(PRINTS_PER_ID)) {
      old.ids.delete(id)
      if (old.ids.size === 0) buckets.get(old.print.fixed)?.delete(old.print.text)
    }
    for (const one of last) one.ids.set(id, atMs)
    lastOf.set(id, last)
  }

  return {
    name: modern ? 'FP-Stalker rules, 2026 attributes + token' : 'FP-Stalker rules (2018)',
    answer(visit) {
      const print = fingerprintOf(visit, modern)
      const id = (modern ? storages.read(visit) : null) ?? link(print, visit.atMs) ?? `stalker-${drawn++}`
      remember(id, print, visit.atMs)
      storages.write(visit, id)
      return { id, confidence: null }
    },
  }
}
