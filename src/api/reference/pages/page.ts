// What a page of the documentation is, before it has its frame, and where each kind of thing stands.

import { docsOf, type ErrorCode } from '../../../domain/errors.ts'
import type { Operation } from '../openapi.ts'
import { anchor } from './html.ts'

export interface Section {
  /** Its anchor. */
  readonly id: string
  /** What the navigation shows, as HTML. */
  readonly label: string
}

/** What the search finds. */
export interface SearchEntry {
  /** 'Guide', 'Endpoint', … */
  readonly kind: string
  readonly title: string
  /** What is said beside the title; '' where it says all. */
  readonly detail: string
  /** '' for the page itself. */
  readonly anchor: string
  /** Names by which it is found as well: fields, settings. */
  readonly names: readonly string[]
}

export interface DocPage {
  /** `/docs/guides/rules` */
  readonly path: string
  readonly title: string
  /** A sentence as text. */
  readonly summary: string
  readonly sections: readonly Section[]
  readonly found: () => readonly SearchEntry[]
  /** Everything below the title. */
  readonly html: () => string
}

export interface Group {
  readonly title: string
  readonly pages: readonly DocPage[]
}

const SCHEMAS = '/docs/schemas'
const EVENTS = '/docs/webhook-events'

export const schemaAnchor = (name: string): string => `schema-${anchor(name)}`
export const schemaAddress = (name: string): string => `${SCHEMAS}#${schemaAnchor(name)}`
export const eventAnchor = (type: string): string => `event-${anchor(type)}`
export const errorAnchor = (code: ErrorCode): string => docsOf(code).slice(docsOf(code).indexOf('#') + 1)
export const errorAddress = docsOf
export const endpointAnchor = ({ operationId }: Operation): string => `op-${anchor(operationId)}`
export const groupPath = (tag: string): string => `/docs/api/${anchor(tag)}`
export const endpointAddress = (operation: Operation): string =>
  `${groupPath(operation.tags[0] ?? '')}#${endpointAnchor(operation)}`
export const PATHS = {
  start: '/docs',
  api: '/docs/api',
  errors: '/docs/errors',
  events: EVENTS,
  schemas: SCHEMAS,
  fields: '/docs/rule-fields',
} as const
