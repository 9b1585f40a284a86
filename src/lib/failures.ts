// The failures every port may raise. Callers decide by class, never by message text.

/** The backend cannot serve now, or the outcome is unknown. The effect may have happened; retry only what is idempotent. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable'
}

/** A compare failed: another writer was first. Nothing was written. */
export class Conflict extends Error {
  override readonly name = 'Conflict'
}

/** The backend has no room (disk, byte cap). Nothing was written. */
export class Full extends Unavailable {
  readonly full = true
}

/** What its sentence alone tells a person how to act upon: no stack is shown. */
export class Told extends Error {}

/** The data on disk is not what this build can read (corrupt, or written by a newer one). */
export class Unreadable extends Told {
  override readonly name = 'Unreadable'
}
