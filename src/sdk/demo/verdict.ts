// Shows one event as a back end gets it: verdict and rule, signals with their evidence, scores with their reasons, why this visitor.

import { chip, element, make, say } from './dom.ts'
import type { Event, Recognition, Signal } from './inside.ts'

const signalNames: readonly (readonly [name: string, meaning: string])[] = [
  ['bot', 'A program drives it'],
  ['tampered', 'It lies about itself'],
  ['incognito', 'Private window'],
  ['vpn', 'VPN'],
  ['proxy', 'Proxy or data centre'],
  ['tor', 'Tor'],
  ['emulator', 'Emulated phone'],
  ['rootedDevice', 'Rooted phone'],
  ['clonedApp', 'Cloned app'],
]
const scoreNames: readonly (readonly [name: string, meaning: string, most: number])[] = [
  ['suspect', 'Suspect, of everything together', 100],
  ['bot', 'Automation', 1],
  ['ato', 'Account takeover', 1],
  ['abuse', 'Abuse of offers', 1],
]
const methods: Readonly<Record<string, string>> = {
  token: 'By the signed token in its storage.',
  exact: 'By its traits: all that count are those of one known browser.',
  linked: 'By its traits: one known browser is alike enough, although something changed.',
  new: 'Nobody known is alike enough, so it is new.',
}
const unclear: Readonly<Record<string, string>> = {
  vpn: 'needs a list of addresses: fingerpost data update',
  proxy: 'needs a list of addresses: fingerpost data update',
  tor: 'needs a list of addresses: fingerpost data update',
}

export function showEvent(event: Event, recognition: Recognition): void {
  showVerdict(event)
  element('signals').replaceChildren(...signalNames.map(([name, meaning]) => signalRow(name, meaning, event)))
  element('scores').replaceChildren(
    ...scoreNames.flatMap(([name, meaning, most]) => scoreRow(name, meaning, most, event)),
  )
  showRecognition(event, recognition)
  say('raw', JSON.stringify(event, null, 2))
}

function showVerdict({ verdict, matchedRule, requestId, request }: Event): void {
  const kinds: Readonly<Record<string, string>> = { allow: 'found', challenge: 'pending', block: 'failed' }
  element('verdict').replaceChildren(chip(kinds[verdict ?? ''] ?? 'none', verdict ?? 'no verdict'))
  say(
    'decided',
    matchedRule
      ? `Decided by the rule “${matchedRule.name}”, priority ${matchedRule.priority}.`
      : 'No rule matched, so nothing was decided. Make one below.',
  )
  say('shown-request', `Request ${requestId}, sent with a ${request.keyKind} key.`)
}

function signalRow(name: string, meaning: string, event: Event): HTMLElement {
  const detail: Signal | undefined = event.signalDetails[name]
  const state = detail?.state ?? 'clear'
  const words = {
    detected: ['failed', 'detected'],
    clear: ['found', 'clear'],
    undetermined: ['none', 'cannot tell'],
  } as const
  const [kind, text] = words[state]
  const title = make('dt', '', meaning, make('code', 'code-name', name))
  const evidence = make('span', 'evidence', evidenceOf(name, detail))
  return make('div', 'signal', title, make('dd', '', chip(kind, text), evidence))
}

function evidenceOf(name: string, detail: Signal | undefined): string {
  if (!detail) return 'nothing speaks for it'
  const because = detail.methods.map(plain).join(', ')
  if (detail.state === 'undetermined') return because || (unclear[name] ?? 'too little was sent')
  return `${because}${detail.type ? ` (${plain(detail.type)})` : ''}, ${percent(detail.confidence)} sure`
}

function scoreRow(name: string, meaning: string, most: number, { scores, scoreReasons = [] }: Event): HTMLElement[] {
  const value = scores?.[name]
  if (value === undefined) return []
  const meter = document.createElement('meter')
  Object.assign(meter, { min: 0, max: most, low: most * 0.4, high: most * 0.7, optimum: 0, value })
  meter.setAttribute('aria-label', meaning)
  const reasons = scoreReasons
    .filter(({ score }) => score === name)
    .map(({ reason, weight }) => `${plain(reason)} ${weight}`)
  const title = make('dt', '', meaning, make('code', 'code-name', name))
  const shown = most === 1 ? value.toFixed(2) : String(Math.round(value))
  const number = make('strong', '', shown)
  const because = make('span', 'evidence', reasons.length > 0 ? reasons.join(', ') : 'no reason')
  return [make('div', 'signal', title, make('dd', '', number, meter, because))]
}

function showRecognition({ visitorId, visitorFound }: Event, recognition: Recognition): void {
  const { method, confidence, compared, anonymitySet, agreement } = recognition
  const alike = anonymitySet > 1 ? ` ${anonymitySet} known visitors look this much alike.` : ''
  say(
    'why',
    `${methods[method] ?? method} Compared with ${compared} known ${compared === 1 ? 'visitor' : 'visitors'}; ${percent(confidence)} sure.${alike}`,
  )
  say('why-id', `${visitorId}${visitorFound ? '' : ' (new)'}`)
  const entries = Object.entries(agreement ?? {}).filter(([, said]) => said !== 'unknown')
  const kinds: Readonly<Record<string, string>> = { agrees: 'found', alternates: 'pending', differs: 'failed' }
  element('agreement').replaceChildren(
    ...entries.map(([name, said]) => make('li', '', `${plain(name)} `, chip(kinds[said] ?? 'none', said))),
  )
  element('agreement').hidden = entries.length === 0
}

/** `software_gpu`, `devicePixelRatio` and `botd:detectUserAgent` as people write. */
const plain = (code: string): string =>
  code
    .replace(/^botd:(detect)?/, '')
    .replace(/_/g, ' ')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
const percent = (share: number): string => `${Math.round(share * 1_000) / 10} %`
