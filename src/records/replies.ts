// What an engine tells the ingress whose clients wait: one bus message per batch and ingress process.

export const replySubject = (ingressId: string): string => `reply.${ingressId}`

/** A repeat of a nonce is answered with the event of `original`; `conflict`: the body differed. */
export interface ReplayNotice {
  readonly requestId: string
  readonly workspace: string
  readonly env: 'live' | 'test'
  readonly original: string
  readonly conflict: boolean
}

export interface ReplyMessage {
  /** When the engine told it, milliseconds since the epoch. */
  readonly at?: number
  /** [requestId, JSON body of the 200] */
  readonly replies: readonly (readonly [string, string])[]
  readonly replays: readonly ReplayNotice[]
}
