// The pages under /docs as somebody reaches them who starts there and follows every link.

export interface DocsPage {
  readonly path: string
  readonly response: Response
  readonly html: string
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
export const plainText = (html: string): string =>
  html.replaceAll(/<[^>]*>/g, '').replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name] ?? '')

/** The targets of all links, as they stand there. */
export const linksOf = (html: string): string[] =>
  [...html.matchAll(/<(?:a|link)\b[^>]*\shref="([^"]+)"/g)].map(([, href = '']) => plainText(href))

export const anchorsOf = (html: string): Set<string> =>
  new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id))

/** In the order in which they are found. A page that does not answer with 200 is among them. */
export async function readPages(url: string): Promise<DocsPage[]> {
  const pages: DocsPage[] = []
  const paths = new Set(['/docs'])
  for (const path of paths) {
    const response = await fetch(url + path)
    const html = await response.text()
    pages.push({ path, response, html })
    for (const href of linksOf(html)) {
      const to = new URL(href, url + path)
      if (to.origin === url && /^\/docs(\/[\w/-]+)?$/.test(to.pathname)) paths.add(to.pathname)
    }
  }
  return pages
}
