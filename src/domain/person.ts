// People who use the console: their roles, what each role may do, and the bounds of what they type.

import { type KeyScope, SCOPES } from './workspace.ts'

/** From the least to the most. */
export const ROLES = ['viewer', 'analyst', 'editor', 'admin'] as const
export type Role = (typeof ROLES)[number]

export const EMAIL_CHARS_MAX = 320
export const PERSON_NAME_CHARS_MAX = 200
export const PASSWORD_CHARS_MIN = 12
export const PASSWORD_CHARS_MAX = 256
export const PEOPLE_PER_WORKSPACE_MAX = 200

export const isAtLeast = (role: Role, least: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(least)

/** The least role that has each scope; the console never identifies. */
const LEAST_ROLE: Readonly<Record<KeyScope, Role | null>> = {
  identify: null,
  'events:read': 'viewer',
  'events:write': 'analyst',
  'visitors:read': 'viewer',
  'visitors:write': 'analyst',
  'visitors:delete': 'admin',
  'rules:read': 'viewer',
  'rules:write': 'editor',
  'lists:read': 'viewer',
  'lists:write': 'analyst',
  'webhooks:read': 'viewer',
  'webhooks:write': 'editor',
  'analytics:read': 'viewer',
  'alerts:read': 'viewer',
  'alerts:write': 'editor',
  'keys:write': 'admin',
}

export const scopesOfRole = (role: Role): readonly KeyScope[] =>
  SCOPES.filter((scope) => {
    const least = LEAST_ROLE[scope]
    return least !== null && isAtLeast(role, least)
  })

/** One spelling per mailbox, as far as that can be told without asking it. */
export const normalEmail = (text: string): string => text.trim().normalize('NFC').toLowerCase()

/** Enough to catch a slip: only a mail can tell whether the mailbox exists, and none is sent. */
export const isEmail = (text: string): boolean => /^[^\s@\p{Cc}]{1,64}@[^\s@\p{Cc}]+\.[^\s@\p{Cc}]+$/u.test(text)
