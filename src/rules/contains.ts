// Whether a text holds another one, in time that grows with the sum of their lengths: rules are asked it of what clients send, on
// threads that others wait for.

import { VALUE_CHARS_MAX } from '../domain/rule.ts'

/**
 * Of texts whose lengths multiply to no more the engine's own search is the faster one, whatever they are. It takes their product in the
 * worst case, such as a long run of one letter: 0.8 ms for 4,000 characters and 1,000.
 */
const PLAIN_MAX = 131_072
/** By place in the part: how many characters before it begin the part anew. Written by each search. */
const restarts = new Uint16Array(VALUE_CHARS_MAX)

export function containsText(text: string, part: string): boolean {
  if (text.length * part.length <= PLAIN_MAX || part.length > restarts.length) return text.includes(part)
  return searched(text, part)
}

/** Knuth, Morris and Pratt, Fast Pattern Matching in Strings, 1977. */
function searched(text: string, part: string): boolean {
  restarts[0] = 0
  for (let at = 1, matched = 0; at < part.length; at++) {
    while (matched > 0 && part.charCodeAt(at) !== part.charCodeAt(matched)) matched = restarts[matched - 1] as number
    if (part.charCodeAt(at) === part.charCodeAt(matched)) matched++
    restarts[at] = matched
  }
  for (let at = 0, matched = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    while (matched > 0 && code !== part.charCodeAt(matched)) matched = restarts[matched - 1] as number
    if (code === part.charCodeAt(matched)) matched++
    if (matched === part.length) return true
  }
  return false
}
