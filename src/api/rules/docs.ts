// How the endpoints of rules are described.

import type { TSchema } from '../../domain/schema.ts'
import { cursorPage, deleted, type Fragment, offsetPage, PAGE_MEMBERS, type RouteDoc, ruleId } from '../describe.ts'
import { Action, Conditions, CreatedRule, ListedRule, Rule, RuleField, SideEffects, UpdatedRule } from './schema.ts'
import { AuditEntry, RuleVersion } from './trial-docs.ts'

const CONDITIONS_EXAMPLE = {
  operator: 'AND',
  rules: [
    { field: 'signals.vpn.detected', operator: 'equals', value: true },
    { field: 'scores.suspect', operator: 'gte', value: 30 },
  ],
}
const ACTION_EXAMPLE = {
  verdict: 'challenge',
  challengeType: 'otp',
  sideEffects: [{ type: 'log', level: 'info', message: 'challenged {{visitorId}}' }],
}
const id = 'rul_3fJ8sKd02LqPzX7mNbVt'
const createdAt = '2026-11-20T18:04:05.123Z'
const head = { id, name: 'Anonymised logins', status: 'live', priority: 10 }
const definition = {
  ...head,
  conditions: CONDITIONS_EXAMPLE,
  action: ACTION_EXAMPLE,
  sideEffects: ACTION_EXAMPLE.sideEffects,
  createdAt,
  updatedAt: createdAt,
}
const updated = { ...head, updatedAt: createdAt, propagated: true, propagationMs: 12 }
const entry = { at: createdAt, actor: 'x7Qz' }
const by = { type: 'key', id: 'key_2wSx4eDc6rFv8tGb0yHn', label: 'backend' }

/** What the schema that validates leaves to the parser of rules. */
const RULE_MEMBERS: Readonly<Record<string, Fragment | TSchema>> = {
  conditions: Conditions,
  action: Action,
  sideEffects: { ...SideEffects, description: 'The same as `action.sideEffects`.' },
}
const WRITTEN: Readonly<Record<string, Fragment | TSchema>> = {
  ...RULE_MEMBERS,
  name: { description: 'For people; need not be unique.' },
  priority: {
    description:
      'Lower is evaluated first. Default: ten more than the highest; 409 where that is no 32-bit number any more.',
  },
  status: { description: 'Only `live` rules decide; `monitor` rules are evaluated and counted. Default: draft.' },
}
const IF_MATCH: Readonly<Record<string, Fragment>> = {
  'if-match': { description: 'The `ETag` of the rule as it was read: a rule that has changed since is a `conflict`.' },
}

export const RULE_DOCS = {
  create: {
    id: 'createRule',
    summary: 'Create a rule',
    description: 'Answers once every evaluator decides by the rule, or after two seconds.',
    refusals: ['plan_required', 'conflict', 'resource_limit_reached'],
    members: WRITTEN,
    bodyExample: { name: head.name, conditions: CONDITIONS_EXAMPLE, action: ACTION_EXAMPLE, status: 'live' },
    answers: {
      201: {
        description: 'The rule is created.',
        schema: CreatedRule,
        headers: ['ETag'],
        example: { ...head, createdAt, propagated: true, propagationMs: 12 },
      },
    },
  },
  list: {
    id: 'listRules',
    summary: 'List rules',
    description: 'In the order in which they are evaluated.',
    members: { ...PAGE_MEMBERS, status: { description: 'Only rules with this status.' } },
    answers: {
      200: {
        description: 'A page of rules.',
        schema: offsetPage(ListedRule),
        example: {
          data: [{ ...head, conditions: { operator: 'AND', count: 2 }, action: 'challenge', createdAt }],
          total: 1,
        },
      },
    },
  },
  fields: {
    id: 'listRuleFields',
    summary: 'List the fields of conditions',
    answers: {
      200: {
        description: 'Every field, with the operators it takes.',
        schema: offsetPage(RuleField),
        example: {
          data: [
            {
              path: 'scores.suspect',
              type: 'number',
              label: 'Suspect score',
              category: 'scores',
              nullable: true,
              operators: ['equals', 'not_equals', 'gt', 'gte', 'lt', 'lte', 'in', 'not_in', 'exists'],
              list: null,
            },
          ],
          total: 1,
        },
      },
    },
  },
  one: {
    id: 'getRule',
    summary: 'Read one rule',
    answers: {
      200: {
        description: 'The rule and what it has done.',
        schema: Rule,
        headers: ['ETag'],
        example: { ...definition, stats: { matchCount: 120, lastMatchAt: createdAt, monitorMatchCount: 0 } },
      },
    },
  },
  update: {
    id: 'updateRule',
    summary: 'Change a rule',
    description: 'Only the members that are sent change. An action without side effects keeps those there are.',
    refusals: ['plan_required', 'conflict', 'resource_limit_reached'],
    members: { ...WRITTEN, ...IF_MATCH },
    bodyExample: { status: 'live' },
    answers: {
      200: { description: 'The rule as it is now.', schema: UpdatedRule, headers: ['ETag'], example: updated },
    },
  },
  remove: {
    id: 'deleteRule',
    summary: 'Delete a rule',
    description: 'Irreversible. When the answer comes no evaluator decides by it any more.',
    refusals: ['conflict'],
    members: IF_MATCH,
    answers: {
      200: {
        description: 'The rule is deleted.',
        schema: deleted('ruleId', ruleId()),
        example: { deleted: true, ruleId: id },
      },
    },
  },
  audit: {
    id: 'listAudit',
    summary: 'Read the audit log',
    description:
      'Who changed what, newest first: rules, lists and how many of their entries were added, removed or given another expiry or reason (`refreshed`), webhooks, alerts, keys, plans and settings, what was said of events, merges, splits, exports and erasures. An erasure names its id and the SHA-256 of the visitor’s; what was kept about that visitor is gone. A page ends early with the entry that passes 1 MB.',
    members: {
      ...PAGE_MEMBERS,
      resource: { description: 'Only changes of this kind of object.' },
      id: { description: 'Only changes of this object; needs `resource`.' },
    },
    answers: {
      200: {
        description: 'A page of changes.',
        schema: cursorPage(AuditEntry),
        example: {
          data: [{ ...entry, by, resource: 'rule', id, action: 'create', before: null, after: definition }],
          hasMore: false,
          nextCursor: null,
        },
      },
    },
  },
  versions: {
    id: 'listRuleVersions',
    summary: 'List the versions of a rule',
    description:
      'Newest first, numbered from 1; they outlive the rule. A page ends early with the entry that passes 1 MB.',
    members: PAGE_MEMBERS,
    answers: {
      200: {
        description: 'A page of versions.',
        schema: cursorPage(RuleVersion),
        example: {
          data: [{ version: 1, etag: '"7"', ...entry, action: 'create', rule: definition }],
          hasMore: false,
          nextCursor: null,
        },
      },
    },
  },
  rollback: {
    id: 'rollBackRule',
    summary: 'Return to an earlier version of a rule',
    description:
      'The version is checked as the body of any other write is: one that names a list or a webhook that is gone, or a field beyond the plan, is refused, with the member of the rule as `field`.',
    refusals: ['plan_required', 'conflict', 'resource_limit_reached'],
    members: {
      ...IF_MATCH,
      version: {
        description:
          'A version of `GET /v1/rules/{ruleId}/versions`; the number of its `etag` is taken too, where no version has it.',
      },
    },
    bodyExample: { version: 1 },
    answers: {
      200: { description: 'The rule as it is now.', schema: UpdatedRule, headers: ['ETag'], example: updated },
    },
  },
} as const satisfies Record<string, RouteDoc>
