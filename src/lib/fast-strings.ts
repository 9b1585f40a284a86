// Keeps methods of strings where compiled code finds them. A class that extends String, as the Redis client has one, leaves the
// prototype of all strings a hash table in V8: from then on every `text.length` and `text.charCodeAt(i)` of the thread is a look-up.

/** Reads until V8 takes the place for a hot one. */
const READS = 64

/** V8 lays the prototype out anew when a hot place reads a member through an object that inherits from it. */
export function layOutStrings(): void {
  const heir = Object.create(String.prototype) as string
  const read = () => heir.trim
  for (let i = 0; i < READS; i++) read()
}
