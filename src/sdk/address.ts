// The address of a page as it is sent: without what its query and fragment may hold, unless the site names it.

const addressCharsMax = 2_048

/** `href`: an absolute address; '' stays ''. */
export function sentAddress(href: string, params: readonly string[] = [], withFragment = false): string {
  const [rest = '', fragment] = split(href, '#')
  const [path, query = ''] = split(rest, '?')
  const named = query.split('&').filter((pair) => params.includes(decoded(pair.split('=', 1)[0] ?? '')))
  const kept = named.length > 0 ? `${path}?${named.join('&')}` : (path ?? '')
  return (withFragment && fragment !== undefined ? `${kept}#${fragment}` : kept).slice(0, addressCharsMax)
}

function split(text: string, mark: string): [string, string?] {
  const at = text.indexOf(mark)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replace(/\+/g, ' '))
  } catch {
    return name
  }
}
