// The parts of a page address that rules and rows know by name.

interface UrlParts {
  readonly host: string | null
  readonly path: string | null
}

const NOTHING: UrlParts = { host: null, path: null }
let lastUrl: string | null = null
let lastParts = NOTHING

/** Host in lower case and path, `/` when empty; both null for a text that is no absolute address. */
export function urlParts(url: string | null): UrlParts {
  // One event asks several times: for its row and for each rule field.
  if (url === lastUrl) return lastParts
  lastUrl = url
  lastParts = url === null ? NOTHING : parse(url)
  return lastParts
}

// By hand, since an expression takes three times as long and this runs for every event.
function parse(url: string): UrlParts {
  const scheme = url.indexOf('://')
  if (scheme < 1 || !isScheme(url, scheme)) return NOTHING
  const start = scheme + 3
  let end = start
  let user = -1
  for (; end < url.length; end++) {
    const c = url.charCodeAt(end)
    if (c === SLASH || c === QUESTION || c === HASH) break
    if (c === AT) user = end
  }
  let pathEnd = end
  for (; pathEnd < url.length; pathEnd++) {
    const c = url.charCodeAt(pathEnd)
    if (c === QUESTION || c === HASH) break
  }
  const host = url.slice(user < 0 ? start : user + 1, end).toLowerCase()
  return { host: host || null, path: url.slice(end, pathEnd) || '/' }
}

const SLASH = 47
const QUESTION = 63
const HASH = 35
const AT = 64

/** A letter, then letters, digits, `+`, `.` and `-`. */
function isScheme(url: string, end: number): boolean {
  for (let i = 0; i < end; i++) {
    const c = url.charCodeAt(i)
    const lower = c | 32
    const isLetter = lower >= 97 && lower <= 122
    const isOther = (c >= 48 && c <= 57) || c === 43 || c === 45 || c === 46
    if (!isLetter && (i === 0 || !isOther)) return false
  }
  return true
}
