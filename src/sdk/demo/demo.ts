// The demo page: identifies the browser with the public SDK and says in plain words what happened and what was sent.

import { openTokenStore, tokenName } from '../token.ts'
import type { Client, Components, IdentifyResult, LoadOptions, PendingResult } from '../types.ts'
import { openBackEnd } from './backend.ts'
import { showComponents } from './collected.ts'
import { element, offer, say } from './dom.ts'
import { enter } from './inside.ts'

declare global {
  interface Window {
    Fingerpost?: { load(options: LoadOptions): Client }
  }
}

// Longer than the default: here completeness matters more than speed.
const collectMsMax = 2_000
const dateFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

async function start(): Promise<void> {
  element('actions').hidden = true
  try {
    const given = keyInAddress()
    // With a key of its own the page shows what any page may know.
    const inside = given === '' ? await enter(takeToken()) : null
    run(connect(given || inside || ''), given || inside || '', inside !== null)
  } catch (error) {
    fail(messageOf(error))
  }
}

/** Out of the address at once: it opens the page only once, and neither history nor bookmarks are to keep it. */
function takeToken(): string | null {
  const token = new URLSearchParams(location.hash.slice(1)).get('token')
  if (token !== null) history.replaceState(null, '', location.pathname)
  return token
}

function connect(publicKey: string): Client {
  if (!publicKey) {
    throw new Error(
      'Open the link that the server printed when it started, or print another one: fingerpost demo. With a public key in the address, ?key=pk_…, the page shows what any page may know.',
    )
  }
  if (!window.Fingerpost) throw new Error('The script /sdk.js did not load. A content blocker may have stopped it.')
  return window.Fingerpost.load({ publicKey, budgetMs: collectMsMax })
}

function run(client: Client, publicKey: string, isInside: boolean): void {
  const store = openTokenStore(tokenName(publicKey))
  const backEnd = isInside ? openBackEnd(publicKey, identify) : null

  async function identify(): Promise<void> {
    setBusy(true)
    for (const id of ['facts', 'visitor']) element(id).hidden = false
    element('failure').hidden = true
    setState('busy', 'Looking…')
    const started = performance.now()
    try {
      const hadToken = (await store.read()) !== null
      const result = await client.get({ tag: { action: 'demo' } })
      const tookMs = performance.now() - started
      const components = await client.components()
      showResult(result, hadToken, tookMs)
      showSteps(result, hadToken, components)
      showComponents(components)
      showCommand(result.requestId, publicKey)
      await backEnd?.identified(result.requestId, 'visitorId' in result ? result.visitorId : null)
    } catch (error) {
      fail(messageOf(error))
    } finally {
      setBusy(false)
    }
  }

  async function forget(): Promise<void> {
    setBusy(true)
    await client.reset()
    setState('busy', 'Storage is empty')
    say('headline', 'Cookie, local storage and IndexedDB are empty now.')
    say('explanation', 'Identify again to see whether this browser is still recognised by its traits alone.')
    say('step-token', 'Removed a moment ago.')
    setBusy(false)
  }

  element('actions').hidden = false
  element('again').addEventListener('click', identify)
  element('forget').addEventListener('click', forget)
  void identify()
}

const keyInAddress = (): string => new URLSearchParams(location.search).get('key') ?? ''

function showResult(result: IdentifyResult | PendingResult, hadToken: boolean, tookMs: number): void {
  say('request', result.requestId)
  say('took', `${Math.round(tookMs)} ms`)
  if (!('visitorId' in result)) {
    setState('pending', 'Recorded')
    say('visitor', '…')
    say('headline', 'The visit is recorded, its result is still being worked out.')
    say('explanation', 'Identify again in a moment, or read the event from your server.')
    return
  }
  setState(result.visitorFound ? 'found' : 'new', result.visitorFound ? 'Recognised' : 'New here')
  say('visitor', result.visitorId)
  const [headline, explanation] = explain(result.visitorFound, hadToken)
  say('headline', headline)
  say('explanation', explanation)
  say('confidence', `${Math.round(result.confidence * 1000) / 10} %, ${wordFor(result.confidence)}`)
  element<HTMLMeterElement>('confidence-meter').value = result.confidence
  say('found', result.visitorFound ? 'Yes' : 'No')
  say('first-seen', result.visitorFound ? showDate(result.firstSeenAt) : 'Just now')
  say('last-seen', result.visitorFound ? showDate(result.lastSeenAt) : 'Just now')
}

function explain(visitorFound: boolean, hadToken: boolean): [string, string] {
  if (visitorFound && hadToken) {
    return [
      'Recognised by a token in its storage.',
      'An earlier visit left a signed token with this site, and it came back with this one. That settles it without guessing.',
    ]
  }
  if (visitorFound) {
    return [
      'Recognised without any storage.',
      'There was no token, as after clearing the storage or in a private window. The traits below match one known browser.',
    ]
  }
  if (hadToken) {
    return [
      'Given a new id.',
      'A token was present, but the server did not accept it: it may belong to an erased visitor or to another workspace.',
    ]
  }
  return [
    'First visit of this browser, as far as the server can tell.',
    'There was no token, and no known browser is alike enough. It has a new id now, and a token for next time.',
  ]
}

function wordFor(confidence: number): string {
  if (confidence >= 0.98) return 'practically certain'
  if (confidence >= 0.9) return 'very likely'
  if (confidence >= 0.7) return 'likely'
  return 'unsure'
}

function showSteps(result: IdentifyResult | PendingResult, hadToken: boolean, components: Components): void {
  say(
    'step-token',
    hadToken
      ? 'Found. It is kept in a cookie, in local storage and in IndexedDB, so that losing one does not lose it.'
      : 'None was there. For next time the server issues one, kept in a cookie, in local storage and in IndexedDB.',
  )
  const entries = Object.values(components)
  const read = entries.filter((component) => 'value' in component).length
  say(
    'step-traits',
    `${read} of ${entries.length} traits could be read. No single one identifies anybody; together they often do.`,
  )
  say('step-decision', describeDecision(result))
}

function describeDecision(result: IdentifyResult | PendingResult): string {
  if (!('visitorId' in result)) return 'Not ready yet.'
  const sureness = wordFor(result.confidence)
  return result.visitorFound ? `The same browser as before: ${sureness}.` : `A browser it has not met: ${sureness}.`
}

function showCommand(requestId: string, publicKey: string): void {
  const secretKey = publicKey.startsWith('pk_test_') ? 'FINGERPOST_TEST_SECRET_KEY' : 'FINGERPOST_SECRET_KEY'
  offer('curl', 'copy', `curl ${location.origin}/v1/events/${requestId} \\\n  -H "Authorization: Bearer $${secretKey}"`)
}

function setBusy(busy: boolean): void {
  for (const id of ['again', 'forget']) element<HTMLButtonElement>(id).disabled = busy
}

function setState(kind: 'busy' | 'found' | 'new' | 'pending' | 'failed', text: string): void {
  element('state').dataset.kind = kind
  say('state', text)
}

function fail(message: string): void {
  setState('failed', 'Not identified')
  say('headline', 'This browser could not be identified.')
  say('explanation', '')
  say('failure', message)
  element('failure').hidden = false
  element('facts').hidden = true
  element('visitor').hidden = true
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function showDate(value: string | null): string {
  return value ? dateFormat.format(new Date(value)) : '–'
}

void start()
