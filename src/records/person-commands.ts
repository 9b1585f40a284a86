// Commands about people: what may stand in `changes` about them, and its validation. Passwords are there as their scrypt, secrets of
// authenticators sealed.

import { EMAIL_CHARS_MAX, PERSON_NAME_CHARS_MAX, ROLES } from '../domain/person.ts'
import { type Described, nullable, oneOf, strict, Type } from '../domain/schema.ts'
import { wholeNumber } from './command-schema.ts'

const id = Type.String({ pattern: '^per_[A-Za-z0-9]{20}$', maxLength: 24 })
const name = Type.String({ minLength: 1, maxLength: PERSON_NAME_CHARS_MAX })
const digest = Type.String({ pattern: '^[0-9a-f]{64}$', maxLength: 64 })
const invitation = nullable(Type.Object({ digest, expiresAt: wholeNumber }, strict))
const password = Type.String({ minLength: 1, maxLength: 300 })
/** OpenID Connect Core 1.0, section 2. */
export const SUBJECT_CHARS_MAX = 255
const sealed = Type.String({ minLength: 1, maxLength: 500 })

const oidc = Type.Object(
  {
    issuer: Type.String({ minLength: 1, maxLength: 2_048 }),
    subject: Type.String({ minLength: 1, maxLength: SUBJECT_CHARS_MAX }),
  },
  strict,
)

/** What becomes of the ways in of a person; what is left out stays. */
const PersonAccess = Type.Object(
  {
    name: Type.Optional(name),
    password: Type.Optional(password),
    totp: Type.Optional(nullable(sealed)),
    invitation: Type.Optional(invitation),
    oidc: Type.Optional(oidc),
  },
  strict,
)
export type PersonAccess = Described<typeof PersonAccess>

export const PERSON_COMMANDS = {
  /** With `isFirst` it is refused once anybody is set up. */
  'person.create': Type.Object(
    {
      ...{ id, name, invitation },
      email: Type.String({ minLength: 3, maxLength: EMAIL_CHARS_MAX }),
      role: oneOf(ROLES),
      password: nullable(password),
      oidc: Type.Optional(oidc),
      peopleMax: wholeNumber,
      isFirst: Type.Boolean(),
    },
    strict,
  ),
  'person.update': Type.Object({ id, name: Type.Optional(name), role: Type.Optional(oneOf(ROLES)) }, strict),
  /**
   * Refused unless the invitation of that digest is still open, when a password was chosen at or after `issuedAt`, and when the person
   * came in with another account of the same provider.
   */
  'person.access': Type.Object(
    {
      id,
      action: oneOf(['join', 'reset', 'invite', 'password', 'authenticator', 'oidc']),
      access: PersonAccess,
      digest: Type.Optional(digest),
      issuedAt: Type.Optional(wholeNumber),
    },
    strict,
  ),
  'person.remove': Type.Object({ id }, strict),
}
