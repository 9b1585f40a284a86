// How the endpoints of /v1/keys are described.

import { deleted, offsetPage, PAGE_MEMBERS, type RouteDoc, words } from '../describe.ts'
import { ADMIN_DOCS, Key, NewKey, RotatedKey } from './docs.ts'

const { createKey, keys, rotateKeys, revokeKey } = ADMIN_DOCS
const environment = { description: "Default, and all that is allowed: the caller's own." }
const BEYOND =
  'A key gives no scopes and no expiry beyond its own; scopes that are not named are the default ones, without `keys:write`.'

export const KEY_DOCS = {
  list: {
    id: 'listOwnKeys',
    summary: 'List keys of this environment',
    description: 'Those that are not revoked.',
    members: PAGE_MEMBERS,
    answers: { 200: { ...keys.answers[200], schema: offsetPage(Key) } },
  },
  create: {
    id: 'createOwnKey',
    summary: 'Create a key of this environment',
    description: `${createKey.description} ${BEYOND}`,
    refusals: ['conflict', 'resource_limit_reached'],
    members: { ...createKey.members, environment },
    bodyExample: { kind: 'public', label: 'shop' },
    answers: { 201: { ...createKey.answers[201], schema: NewKey } },
  },
  rotate: {
    id: 'rotateOwnKeys',
    summary: 'Replace all keys of a kind in this environment',
    description: `${rotateKeys.description} ${BEYOND}`,
    refusals: ['conflict', 'resource_limit_reached'],
    members: { environment },
    bodyExample: { kind: 'public' },
    answers: { 201: { ...rotateKeys.answers[201], schema: RotatedKey } },
  },
  revoke: {
    id: 'revokeOwnKey',
    summary: 'Revoke a key of this environment',
    answers: { 200: { ...revokeKey.answers[200], schema: deleted('keyId', words()) } },
  },
} as const satisfies Record<string, RouteDoc>
