// The parts of a page address that rules and rows know by name.

/** Host in lower case and path, `/` when empty; both null for a text that is no absolute address. */
export function urlParts(url: string | null): { readonly host: string | null; readonly path: string | null } {
  const match = url === null ? null : /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#]*)([^?#]*)/i.exec(url)
  if (match === null) return { host: null, path: null }
  return { host: (match[1] as string).toLowerCase() || null, path: match[2] || '/' }
}
