// Text into HTML: nothing of the document reaches the page unescaped.

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '')

/** A sentence with `code` in backticks. */
export const inline = (text: string): string =>
  text
    .split('`')
    .map((part, i) => (i % 2 === 1 ? `<code>${escapeHtml(part)}</code>` : escapeHtml(part)))
    .join('')

/** Paragraphs, parted by empty lines. */
export const paragraphs = (text: string): string =>
  text
    .split('\n\n')
    .map((one) => `<p>${inline(one)}</p>`)
    .join('')

export const anchor = (text: string): string => text.replaceAll(/[^A-Za-z0-9]+/g, '-')

export const codeBlock = (code: string, title?: string): string =>
  `<figure class="code">${title === undefined ? '' : `<figcaption>${escapeHtml(title)}</figcaption>`}<pre tabindex="0"><code>${escapeHtml(code)}</code></pre></figure>`

const JSON_TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** JSON with its names, texts and literals marked. */
export function jsonBlock(value: unknown, title?: string): string {
  const text = JSON.stringify(value, null, 2)
  let html = ''
  let from = 0
  for (const match of text.matchAll(JSON_TOKEN)) {
    const [whole, quoted, colon] = match
    html += escapeHtml(text.slice(from, match.index))
    const kind = quoted === undefined ? 'l' : colon === undefined ? 's' : 'n'
    html += `<i class="${kind}">${escapeHtml(quoted ?? whole)}</i>${escapeHtml(colon ?? '')}`
    from = match.index + whole.length
  }
  html += escapeHtml(text.slice(from))
  return `<figure class="code">${title === undefined ? '' : `<figcaption>${escapeHtml(title)}</figcaption>`}<pre tabindex="0"><code>${html}</code></pre></figure>`
}

/** Rows are HTML. It scrolls by itself where it is wider than the page. */
export const table = (heads: readonly string[], rows: readonly string[]): string =>
  `<div class="wide" tabindex="0"><table><thead><tr>${heads.map((head) => `<th>${escapeHtml(head)}</th>`).join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`
