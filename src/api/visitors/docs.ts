// What the API shows of visitors, and how their endpoints are described.

import { Type } from '../../domain/schema.ts'
import {
  countOf,
  cursorPage,
  deleted,
  moment,
  orNull,
  PAGE_MEMBERS,
  type RouteDoc,
  requestId,
  share,
  shared,
  visitorId,
  words,
} from '../describe.ts'
import { verdict } from '../events/schema.ts'

export const Visitor = shared(
  'Visitor',
  Type.Object({
    visitorId: visitorId(),
    firstSeenAt: moment(),
    lastSeenAt: moment(),
    totalVisits: countOf('Number of identifications.'),
    devices: Type.Array(Type.Object({ platform: words(), browser: words(), gpu: orNull(words()) })),
    ips: Type.Array(words(), { description: 'The latest 20, masked.' }),
    linkedAccounts: countOf('Distinct accounts; exact up to 1,000.'),
    lists: Type.Array(words(), { description: 'Names of the lists the visitor is on.' }),
    previousVerdicts: Type.Object({ allow: countOf(), challenge: countOf(), block: countOf() }),
  }),
)

export const FoundVisitor = shared(
  'FoundVisitor',
  Type.Object({
    visitorId: visitorId(),
    firstSeenAt: moment(),
    lastSeenAt: moment(),
    totalVisits: countOf('Number of identifications.'),
    previousVerdicts: Type.Object({ allow: countOf(), challenge: countOf(), block: countOf() }),
    requestId: requestId('The newest event that was found; what follows is what it says.'),
    confidence: share(),
    verdict,
    linkedId: orNull(words()),
    country: orNull(words()),
    platform: words(),
    browser: words(),
    email: orNull(words('Masked.')),
  }),
)

export const DeletedVisitor = Type.Object({
  ...deleted('visitorId', visitorId()).properties,
  erasureId: words('Names the erasure of what is stored.'),
})

export const SplitVisitor = Type.Object({ visitorId: visitorId(), moved: countOf('Number of events.') })

const example = {
  visitorId: 'pv_7Hq2LmZx90TbVcRk4WsE',
  firstSeenAt: '2026-09-02T07:11:40.010Z',
  lastSeenAt: '2026-11-20T18:04:05.123Z',
  totalVisits: 17,
  devices: [{ platform: 'Windows', browser: 'Chrome 147', gpu: 'NVIDIA GeForce RTX 3060' }],
  ips: ['203.0.113.*'],
  linkedAccounts: 1,
  lists: ['trusted_devices'],
  previousVerdicts: { allow: 15, challenge: 2, block: 0 },
}

const foundExample = {
  visitorId: example.visitorId,
  firstSeenAt: example.firstSeenAt,
  lastSeenAt: example.lastSeenAt,
  totalVisits: example.totalVisits,
  previousVerdicts: example.previousVerdicts,
  requestId: 'req_01KAJ6Q3ZV8M4T9XW2C5E7G1HN',
  confidence: 0.9821,
  verdict: 'challenge',
  linkedId: 'user_42',
  country: 'GB',
  platform: 'Windows',
  browser: 'Chrome 147',
  email: 'a***@b.example',
}

export const VISITOR_DOCS = {
  one: {
    id: 'getVisitor',
    summary: 'Read one visitor',
    answers: { 200: { description: 'The visitor.', schema: Visitor, example } },
  },
  search: {
    id: 'searchVisitors',
    summary: 'Search visitors',
    queryExample: { linkedId: 'user_42' },
    description:
      'Visitors with an event that meets all that is asked, by the newest such event, newest first. At least one of `linkedId`, `email`, `ip`, `list` and `q` is needed. A page may have fewer than `limit` although there are more.',
    members: {
      limit: PAGE_MEMBERS.limit ?? {},
      cursor: PAGE_MEMBERS.cursor ?? {},
      linkedId: { description: 'Visitors with an event of this account.' },
      email: { description: 'Visitors with an event with this email, in full.', examples: ['ann@shop.example'] },
      ip: {
        description:
          'Visitors with an event from this address or range. Events older than `retention.fullIpDays` have only a network.',
        examples: ['203.0.113.0/24'],
      },
      list: {
        description:
          'Visitors who are, or have an event with an email or address that is, on this list: its name or id.',
      },
      q: { description: 'What the id, the account or the email begins with.', examples: ['user_4'] },
    },
    answers: {
      200: {
        description: 'A page of visitors.',
        schema: cursorPage(FoundVisitor),
        example: { data: [foundExample], hasMore: false, nextCursor: null },
      },
    },
  },
  merge: {
    id: 'mergeVisitors',
    summary: 'Merge another visitor into this one',
    description:
      'The visitor of the path survives. The other becomes its alias: reads follow it, and its places on lists move.',
    refusals: ['resource_limit_reached'],
    bodyExample: { visitorId: 'pv_00aQw3eRt5yUi7oPl1kJ' },
    members: { visitorId: { description: 'The visitor that ends.' } },
    answers: { 200: { description: 'The surviving visitor.', schema: Visitor, example } },
  },
  split: {
    id: 'splitVisitor',
    summary: 'Split events off as another visitor',
    description:
      'The events were of another device, which becomes a visitor of its own; places on lists stay with the visitor of the path. After the answer every read shows the events as the new visitor’s, and tokens given out in them lead to it. The same request again is the same split, until it is merged back.',
    bodyExample: { requestIds: ['req_01KB0V3X9Q4T7ZC2M5N8P1R6SW'] },
    members: { requestIds: { description: 'Events of the visitor, each once.' } },
    answers: {
      201: {
        description: 'The new visitor.',
        schema: SplitVisitor,
        example: { visitorId: 'pv_00aQw3eRt5yUi7oPl1kJ', moved: 1 },
      },
    },
  },
  remove: {
    id: 'deleteVisitor',
    summary: 'Erase a visitor',
    description:
      'For requests of privacy law; irreversible. Before the answer the visitor is out of every read, list and aggregate; stored rows are physically gone within 24 hours. The same device is a new visitor from then on.',
    answers: {
      200: {
        description: 'The visitor is erased.',
        schema: DeletedVisitor,
        example: { deleted: true, visitorId: example.visitorId, erasureId: 'era_5tGb7yHn9uJm1kIo3lPq' },
      },
    },
  },
} as const satisfies Record<string, RouteDoc>
