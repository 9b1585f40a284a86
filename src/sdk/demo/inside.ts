// What the page asks behind its link: the same answers a back end gets with a secret key of the test environment.

export type Signal = {
  state: 'detected' | 'clear' | 'undetermined'
  confidence: number
  methods: string[]
  type?: string
}
export type Rule = { id: string; name: string; priority: number }
export type Event = {
  requestId: string
  visitorId: string
  confidence: number
  visitorFound: boolean
  timestamp: string
  device: { browser: string | null; os: string | null; type: string | null }
  signals: Record<string, boolean | { detected: boolean }>
  signalDetails: Record<string, Signal>
  scores?: Record<string, number>
  scoreReasons?: { score: string; reason: string; weight: number }[]
  verdict: string | null
  matchedRule: Rule | null
  matchedRules: (Rule & { verdict: string; deciding: boolean })[]
  request: { keyKind: string }
}
export type Recognition = {
  method: string
  confidence: number
  anonymitySet: number
  compared: number
  agreement: Record<string, string> | null
  browserVersion: string | null
  network: string | null
}
export type Summary = {
  requestId: string
  visitorId: string
  confidence: number
  verdict: string | null
  timestamp: string
}

const waitMs = 300
const triesMax = 20

async function ask<T>(path: string, method = 'GET', body?: object): Promise<{ status: number; answer: T }> {
  const response = await fetch(`/demo/api/${path}`, {
    method,
    credentials: 'same-origin',
    ...(body ? { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) } : {}),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error?.message ?? `The server answered ${response.status}.`)
  return { status: response.status, answer }
}

/** Opens the page with the link's token, or finds it open; null where neither is so. */
export async function enter(token: string | null): Promise<string | null> {
  const found = await ask<{ publicKey: string | null }>('session')
  if (found.answer.publicKey !== null || token === null) return found.answer.publicKey
  return (await ask<{ publicKey: string }>('session', 'POST', { token })).answer.publicKey
}

/** The event, once it is decided, and why it has its visitor. */
export async function readEvent(requestId: string): Promise<{ event: Event; recognition: Recognition }> {
  for (let tries = 1; ; tries++) {
    const { status, answer: event } = await ask<Event>(`events/${requestId}`)
    if (status === 200) {
      const { answer: recognition } = await ask<Recognition>(`events/${requestId}/identity`)
      return { event, recognition }
    }
    if (tries === triesMax) throw new Error('The visit is not decided yet. Identify again in a moment.')
    await new Promise((resolve) => setTimeout(resolve, waitMs))
  }
}

export const newestVisits = async (): Promise<Summary[]> =>
  (await ask<{ data: Summary[] }>('events?limit=8')).answer.data

export const blockVisitor = async (visitorId: string): Promise<Rule> =>
  (await ask<Rule>('rules', 'POST', { visitorId })).answer

export const removeRule = (id: string): Promise<unknown> => ask(`rules/${id}`, 'DELETE')
