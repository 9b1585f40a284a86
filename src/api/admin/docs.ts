// What the operator's API shows of workspaces and keys, and how its endpoints are described; also `/v1/meta`.

import { ENVS } from '../../domain/event.ts'
import { oneOf, Type } from '../../domain/schema.ts'
import { API_VERSIONS, PLANS, SCOPES } from '../../domain/workspace.ts'
import {
  deleted,
  moment,
  offsetPage,
  orNull,
  PAGE_MEMBERS,
  REPLAYED,
  type RouteDoc,
  shared,
  words,
} from '../describe.ts'

const id = words()
export const Workspace = shared(
  'Workspace',
  Type.Object({
    id,
    name: words(),
    plan: oneOf(PLANS),
    apiVersion: words('Formats webhooks.'),
    settings: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
    createdAt: moment(),
  }),
)
const keyMembers = {
  id,
  kind: oneOf(['public', 'secret']),
  environment: oneOf(ENVS),
  prefix: words(),
  last4: words(),
  label: orNull(words()),
  scopes: orNull(Type.Array(oneOf(SCOPES), { description: 'null: every scope of its kind but `keys:write`.' })),
  origins: orNull(Type.Array(words(), { description: 'null: any origin.' })),
  createdAt: moment(),
  expiresAt: orNull(moment()),
}
export const Key = shared('Key', Type.Object(keyMembers))
const text = orNull(words('The key itself, in this answer only; null in a repetition once the key is no longer valid.'))
export const NewKey = shared('NewKey', Type.Object({ ...keyMembers, key: text, replayed: REPLAYED }))
export const RotatedKey = shared(
  'RotatedKey',
  Type.Object({
    ...keyMembers,
    key: text,
    replayed: REPLAYED,
    revoked: Type.Array(id, { description: 'Ids of the keys that died.' }),
  }),
)
export const Meta = shared(
  'Meta',
  Type.Object({
    apiVersion: words('The version of this workspace.'),
    apiVersions: Type.Array(words()),
    build: Type.Unsafe<Record<string, string | boolean>>({
      type: 'object',
      additionalProperties: { type: ['string', 'boolean'] },
    }),
    sdk: Type.Object({ version: words(), path: words('Of the browser SDK of exactly this build: it never changes.') }),
  }),
)

const workspace = {
  id: 'ws_5tGb7yHn9uJm1kIo3lPq',
  name: 'Shop',
  plan: 'pro',
  apiVersion: API_VERSIONS[0],
  settings: { clientResult: 'id' },
  createdAt: '2026-11-01T08:00:00.000Z',
}
const key = {
  id: 'key_2wSx4eDc6rFv8tGb0yHn',
  kind: 'secret',
  environment: 'live',
  prefix: 'sk_live_',
  last4: 'x7Qz',
  label: 'backend',
  scopes: ['events:read'],
  origins: null,
  createdAt: workspace.createdAt,
  expiresAt: null,
}
const shownOnce = `sk_live_${'0'.repeat(45)}x7Qz`
const WORKSPACE_MEMBERS = {
  plan: { description: 'Sets limits, and whether there are scores. Default: enterprise.' },
  apiVersion: { description: 'Formats webhooks. Default: the first version.' },
  settings: { description: 'What is given replaces what was set; `limits: null` lifts the limits.' },
}

export const ADMIN_DOCS = {
  createWorkspace: {
    id: 'createWorkspace',
    summary: 'Create a workspace',
    refusals: ['conflict'],
    members: WORKSPACE_MEMBERS,
    bodyExample: { name: 'Shop', plan: 'pro' },
    answers: { 201: { description: 'The workspace is created.', schema: Workspace, example: workspace } },
  },
  workspaces: {
    id: 'listWorkspaces',
    summary: 'List workspaces',
    members: PAGE_MEMBERS,
    answers: {
      200: {
        description: 'A page of workspaces.',
        schema: offsetPage(Workspace),
        example: { data: [workspace], total: 1 },
      },
    },
  },
  workspace: {
    id: 'getWorkspace',
    summary: 'Read one workspace',
    answers: { 200: { description: 'The workspace.', schema: Workspace, example: workspace } },
  },
  updateWorkspace: {
    id: 'updateWorkspace',
    summary: 'Change a workspace',
    members: WORKSPACE_MEMBERS,
    bodyExample: { settings: { clientResult: 'verdict' } },
    answers: { 200: { description: 'The workspace as it is now.', schema: Workspace, example: workspace } },
  },
  createKey: {
    id: 'createKey',
    summary: 'Create a key',
    description: 'The text of the key is in this answer and nowhere else.',
    refusals: ['conflict', 'resource_limit_reached'],
    members: {
      scopes: { description: 'Secret keys only. Default: all but `keys:write`.' },
      origins: {
        description:
          'Public keys only: pages that may use it. Default: any. Requests without an `Origin` pass, since only browsers send one: this keeps other pages away, not programs.',
      },
      expiresAt: { description: 'Default: never.', format: 'date-time' },
    },
    bodyExample: { kind: 'secret', environment: 'live', label: 'backend', scopes: ['events:read'] },
    answers: {
      201: { description: 'The key is created.', schema: NewKey, example: { ...key, key: shownOnce } },
    },
  },
  keys: {
    id: 'listKeys',
    summary: 'List keys',
    description: 'Those that are not revoked.',
    members: PAGE_MEMBERS,
    answers: {
      200: { description: 'A page of keys.', schema: offsetPage(Key), example: { data: [key], total: 1 } },
    },
  },
  rotateKeys: {
    id: 'rotateKeys',
    summary: 'Replace all keys of a kind',
    description: 'A new key; all older ones of this kind and environment die at once.',
    refusals: ['conflict', 'resource_limit_reached'],
    bodyExample: { kind: 'secret', environment: 'live' },
    answers: {
      201: {
        description: 'The new key.',
        schema: RotatedKey,
        example: { ...key, label: null, scopes: null, key: shownOnce, revoked: ['key_0oKm9ijN8uhB7ygV6tfC'] },
      },
    },
  },
  revokeKey: {
    id: 'revokeKey',
    summary: 'Revoke a key',
    answers: {
      200: {
        description: 'The key is revoked, on every process within a second.',
        schema: deleted('keyId', words()),
        example: { deleted: true, keyId: key.id },
      },
    },
  },
} as const satisfies Record<string, RouteDoc>

export const META_DOC = {
  id: 'getMeta',
  summary: 'Read versions and build',
  answers: {
    200: {
      description: 'What answers.',
      schema: Meta,
      example: {
        apiVersion: API_VERSIONS[0],
        apiVersions: API_VERSIONS,
        build: { version: '0.1.0', commit: 'd0ea9d1' },
        sdk: { version: '1.1.0', path: '/sdk/1.1.0-Jp8mX2kQ0aZ4.js' },
      },
    },
  },
} as const satisfies RouteDoc
