// What webhooks are told of two visitors that turn out to be one.

import { oneOf, Type } from '../../domain/schema.ts'
import { moment, orNull, requestId, share, visitorId } from '../describe.ts'
import { EVENT_EXAMPLE } from '../events/examples.ts'

export const MERGED = {
  description:
    'Two visitors turned out to be one: from now on the events of the second have the id of the first. People said so, or a visit showed it; `POST /v1/visitors/{visitorId}/split` undoes it.',
  data: Type.Object({
    visitorId: visitorId('The id that stays.'),
    mergedVisitorId: visitorId('The id that stands for it from now on.'),
    by: oneOf(['people', 'engine']),
    requestId: orNull(requestId('The visit that showed it; null where people said so.')),
    confidence: orNull(share('How sure that was.')),
    timestamp: moment(),
  }),
  example: {
    visitorId: EVENT_EXAMPLE.visitorId,
    mergedVisitorId: 'pv_7dH2kLm9QrStUvWxYz01',
    by: 'engine',
    requestId: EVENT_EXAMPLE.requestId,
    confidence: 0.9731,
    timestamp: EVENT_EXAMPLE.timestamp,
  },
}
