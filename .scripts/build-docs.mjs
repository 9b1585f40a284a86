// Makes the guides of src/docs into what the server shows under /docs, beside the style and script of its pages: build/docs. Also runs
// by itself. HTML in a guide is shown as text; a link that the pages cannot follow fails the build.

import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Marked } from 'marked'
import { build } from 'vite'
import { stylesheet } from './stylesheet.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const guides = join(root, 'src/docs/guides')
const source = join(root, 'src/sdk/docs')
const out = join(root, 'build/docs')

/** Resolves to the folder the files are in. */
export async function buildDocs() {
  const made = JSON.stringify(await readGuides())
  await rm(out, { recursive: true, force: true })
  await mkdir(out, { recursive: true })
  await writeFile(join(out, 'guides.json'), made)
  await build({
    configFile: false,
    root: source,
    logLevel: 'warn',
    publicDir: false,
    build: {
      target: 'es2020',
      outDir: out,
      emptyOutDir: false,
      minify: 'oxc',
      reportCompressedSize: false,
      lib: { entry: join(source, 'docs.ts'), formats: ['es'], name: 'unused', fileName: () => 'docs.js' },
    },
  })
  await writeFile(join(out, 'docs.css'), await stylesheet(join(source, 'docs.css')))
  await cp(join(source, 'icon.svg'), join(out, 'icon.svg'))
  return out
}

/** In the order of their index, the contract behind them. */
async function readGuides() {
  const index = await readFile(join(guides, 'README.md'), 'utf8')
  const listed = [...index.matchAll(/^- \[[^\]]+\]\(([\w-]+)\.md\): (.+)$/gm)].map(([, name, summary]) => ({
    name,
    summary: sentence(summary),
    file: join(guides, `${name}.md`),
  }))
  if (listed.length === 0) throw new Error('the index of the guides names none')
  const contract = { name: 'contract', summary: 'What clients may rely on.', file: join(guides, '../contract.md') }
  return Promise.all(
    [...listed, contract].map(async ({ name, summary, file }) => ({
      name,
      summary,
      ...render(await readFile(file, 'utf8'), basename(file), new Set(listed.map((one) => one.name))),
    })),
  )
}

const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escapeHtml = (text) => text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character])

/** Where a link leads that a guide has. */
function addressOf(href, file, names) {
  const [, path, place = ''] = /^([^#]*)(#.*)?$/.exec(href)
  if (path === '' || /^https:\/\//.test(href)) return href
  const name = /^(?:guides\/)?([\w-]+)\.md$/.exec(path)?.[1]
  if (/^(?:\.\.\/)?contract\.md$/.test(path)) return `/docs/guides/contract${place}`
  if (name === 'README') return '/docs'
  if (name !== undefined && names.has(name)) return `/docs/guides/${name}${place}`
  throw new Error(`${file}: the pages under /docs have no ${href}`)
}

/** One guide: its title, its HTML, and its headings with the names in code below each. */
export function render(text, file, names) {
  const headings = [{ id: '', text: '', level: 1, names: [] }]
  const seen = new Map()
  let title = null

  /** As GitHub makes it. */
  function anchorOf(text) {
    const plain = text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-')
    const times = seen.get(plain) ?? 0
    seen.set(plain, times + 1)
    return times === 0 ? plain : `${plain}-${times}`
  }

  const renderer = {
    heading({ tokens, depth }) {
      const html = this.parser.parseInline(tokens)
      const plain = this.parser.parseInline(tokens, this.parser.textRenderer)
      if (depth === 1 && title === null) {
        title = plain
        return ''
      }
      const id = anchorOf(plain)
      headings.push({ id, text: plain, level: depth, names: [] })
      return `<h${depth} id="${id}"><a href="#${id}">${html}</a></h${depth}>\n`
    },
    code({ text, lang = '' }) {
      const kind = /^\w+$/.test(lang) ? ` class="${lang}"` : ''
      return `<figure class="code"><pre tabindex="0"><code${kind}>${escapeHtml(text)}</code></pre></figure>\n`
    },
    codespan({ text }) {
      headings.at(-1).names.push(...text.split(/[^\w.-]+/).filter((word) => /^[A-Za-z_][\w.-]{2,}$/.test(word)))
      // Names of settings are longer than a narrow screen is wide.
      return `<code>${escapeHtml(text).replaceAll(/(?<=\w)_(?=\w)/g, '_<wbr>')}</code>`
    },
    table(token) {
      const row = (cells, tag) =>
        `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`
      return `<div class="wide" tabindex="0"><table><thead>${row(token.header, 'th')}</thead><tbody>${token.rows
        .map((cells) => row(cells, 'td'))
        .join('')}</tbody></table></div>\n`
    },
    link({ href, tokens }) {
      const address = addressOf(href, file, names)
      const away = address.startsWith('https:') ? ' rel="noreferrer"' : ''
      return `<a href="${escapeHtml(address)}"${away}>${this.parser.parseInline(tokens)}</a>`
    },
    image({ href }) {
      throw new Error(`${file}: the pages under /docs show no images, ${href} neither`)
    },
    html: ({ text }) => escapeHtml(text),
  }
  // An address that is no link in the source is an example.
  const tokenizer = { url: () => undefined }
  const html = new Marked({ gfm: true, renderer, tokenizer }).parse(text)
  if (title === null) throw new Error(`${file} has no title`)
  return { title, html, headings: headings.map((one) => ({ ...one, names: [...new Set(one.names)] })) }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildDocs()
