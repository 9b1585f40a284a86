// What the reference says apart from endpoints: introduction, groups, headers, keys and ids.

import type { Fragment } from '../describe.ts'

export const INTRODUCTION = `Fingerpost recognises devices, decides what to do with each visit by your rules, and tells you of it.

Bodies are JSON in UTF-8. Times are UTC with milliseconds and a \`Z\`; in requests RFC 3339, seconds optional. Members may be added to answers and types to events at any time: ignore what you do not know. Unknown parameters and members in requests are refused.

Collections are \`{data, hasMore, nextCursor}\` or \`{data, total}\`. A \`PUT\` changes only the members that are sent.`

export const CLAIMS = `A public key is in your page for everybody to read, so \`linkedId\`, \`email\` and \`tag\` of an event that came with one are claims: whoever has the key can send them as they like. A rule that acts on a claim can be turned against a victim. Where bots are put on a list by \`email\`, a bot that sends the victim's address puts the victim there, and the next rule blocks a customer who has done nothing; where too many devices of a \`linkedId\` lock an account, a script locks any account it can name.

What Fingerpost sees by itself (\`visitorId\`, \`ip\`, \`device\`, \`signals\`) is of the one who sends. So act on claims only where your server has sent them with its secret key, \`request.keyKind\` equals \`secret\`, and give \`addToList\` the member \`verifiedOnly: true\`: then email, account and tag of events with a public key are left out and counted. An allow-list of origins does not change this: requests without \`Origin\` pass it, since only browsers send one.`

/** Acts on what is claimed only where a server has said it. */
export const SAFE_RULE = {
  name: 'Emails that bots use',
  status: 'live',
  conditions: {
    operator: 'AND',
    rules: [
      { field: 'signals.bot.detected', operator: 'equals', value: true },
      { field: 'request.keyKind', operator: 'equals', value: 'secret' },
    ],
  },
  action: {
    verdict: 'block',
    sideEffects: [{ type: 'addToList', list: 'bot_emails', value: 'email', verifiedOnly: true }],
  },
}

export const ATTRIBUTION = `Fingerpost ships no data about addresses. What is known of them comes from the sources that the operator of this deployment has set up or whose licences were accepted (\`fingerpost data update --recommended\`); \`GET /readyz\` lists them with their age under \`ipSources\`. Each has a licence of its own, and some ask to be named wherever their data is shown:`
export const ATTRIBUTED: readonly (readonly [source: string, asks: string])[] = [
  ['DB-IP Lite (CC BY 4.0)', 'IP Geolocation by DB-IP, https://db-ip.com'],
  [
    'GeoLite (GeoLite EULA)',
    'This product includes GeoLite data created by MaxMind, available from https://www.maxmind.com',
  ],
  ['IPinfo Lite (CC BY-SA 4.0)', 'IP address data powered by IPinfo, https://ipinfo.io'],
  ['tz-lookup (CC0), part of Fingerpost', 'Time zones by place; asks for nothing'],
]

export const TAGS: Readonly<Record<string, string>> = {
  identify: 'Where events come from.',
  events: 'One identification each, with everything that is known about it.',
  visitors: 'Devices across their visits.',
  rules: 'What decides verdicts, and ways to try them.',
  lists: 'Visitors, addresses and emails that rules refer to.',
  webhooks: 'Who is told of events, and what became of each delivery.',
  analytics: 'Counts over time.',
  alerts: 'Thresholds that are watched.',
  erasures: 'What became of erased visitors.',
  audit: 'Who changed what.',
  keys: 'Keys of the own workspace and environment.',
  meta: 'Versions.',
  admin: 'Workspaces and keys, for whoever runs the deployment.',
  service: 'What machines ask of a process. No key.',
}

/** The group of a path. */
export function tagOf(path: string): string {
  const [, root = '', name = ''] = path.split('/')
  if (root === 'admin') return 'admin'
  return root === 'v1' && Object.hasOwn(TAGS, name) ? name : root === 'v1' ? name : 'service'
}

export const HEADERS: Readonly<Record<string, readonly [description: string, type: 'string' | 'integer']>> = {
  'X-Request-Id': ['Names this call; quote it when you ask about it.', 'string'],
  'X-RateLimit-Limit': ['How many requests of this class a minute takes. Absent where there is no limit.', 'integer'],
  'X-RateLimit-Remaining': ['How many of them are left.', 'integer'],
  'X-RateLimit-Reset': ['Unix time at which the minute ends.', 'integer'],
  'Retry-After': ['Seconds to wait.', 'integer'],
  'WWW-Authenticate': ['Always `Bearer`.', 'string'],
  ETag: ['The version of the object, for If-Match.', 'string'],
  'Idempotent-Replayed': ['`true` on an answer that was given before.', 'string'],
}

const id = (what: string, prefix: string, example: string): Fragment => ({
  description: `Id of the ${what}, \`${prefix}_…\`.`,
  examples: [example],
})
/** By the name in the path. */
export const PATH_PARAMETERS: Readonly<Record<string, Fragment>> = {
  requestId: id('event', 'req', 'req_01KAJ6Q3ZV8M4T9XW2C5E7G1HN'),
  visitorId: id('visitor', 'pv', 'pv_7Hq2LmZx90TbVcRk4WsE'),
  ruleId: id('rule', 'rul', 'rul_3fJ8sKd02LqPzX7mNbVt'),
  listId: id('list', 'lst', 'lst_9aQw3eRt5yUi7oPl1kJh'),
  webhookId: id('webhook', 'wh', 'wh_8uJm0kIo2lPq4aSd6fGh'),
  deliveryId: id('delivery', 'dlv', 'dlv_01KAJ6Q3ZV8M4T9XW2C5E7G1HN'),
  alertId: id('alert', 'alr', 'alr_1qAz3wSx5eDc7rFv9tGb'),
  erasureId: id('erasure', 'era', 'era_5tGb7yHn9uJm1kIo3lPq'),
  workspaceId: id('workspace', 'ws', 'ws_5tGb7yHn9uJm1kIo3lPq'),
  keyId: id('key', 'key', 'key_2wSx4eDc6rFv8tGb0yHn'),
}

export const HEADER_PARAMETERS: Readonly<Record<string, readonly [name: string, description: string]>> = {
  'if-match': [
    'If-Match',
    'The `ETag` of the object as it was read; one it does not have is a `conflict`. `*` is any.',
  ],
  'if-none-match': ['If-None-Match', 'The `ETag` of what you have.'],
  'idempotency-key': [
    'Idempotency-Key',
    'Any text of yours: within 24 hours the same key and body are answered with the first answer.',
  ],
}

export const SECURITY: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  secretKey: {
    type: 'http',
    scheme: 'bearer',
    description: '`Authorization: Bearer sk_live_…` or `sk_test_…`: the server-side API, by the scopes of the key.',
  },
  publicKey: {
    type: 'http',
    scheme: 'bearer',
    description: '`Authorization: Bearer pk_live_…` or `pk_test_…`: identify, from browsers and apps.',
  },
  publicKeyInQuery: {
    type: 'apiKey',
    in: 'query',
    name: 'key',
    description: 'A public key as `?key=`, so that a browser needs no preflight.',
  },
  operatorToken: {
    type: 'http',
    scheme: 'bearer',
    description: '`Authorization: Bearer <operator token>`: workspaces and keys.',
  },
}
