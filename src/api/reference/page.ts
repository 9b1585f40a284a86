// The reference as one page of HTML without scripts: it asks nothing of any other place, and its policy allows nothing.

import { createHash } from 'node:crypto'
import { ERRORS, type ErrorCode } from '../../domain/errors.ts'
import { SCOPES } from '../../domain/workspace.ts'
import { anchor, codeBlock, escapeHtml, inline, jsonBlock, paragraphs } from './html.ts'
import { endpointsOf, type OpenApiDocument } from './openapi.ts'
import { endpointAnchor, endpointSection, methodBadge } from './page-endpoint.ts'
import { memberRow, schemaMembers, schemaSection } from './page-schema.ts'
import { STYLE } from './page-style.ts'
import { WHEN } from './refusals.ts'
import { CLIENT_SNIPPET, VERIFY_SNIPPETS } from './snippets.ts'
import { ATTRIBUTED, ATTRIBUTION, CLAIMS, SAFE_RULE } from './words.ts'

const styleHash = createHash('sha256').update(STYLE).digest('base64')
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

interface Part {
  readonly id: string
  readonly title: string
  readonly html: string
  /** Entries below it in the navigation, as HTML. */
  readonly links?: readonly string[]
}

export function referencePage(document: OpenApiDocument): string {
  const { info } = document
  const parts: Part[] = [
    { id: 'start', title: 'Introduction', html: paragraphs(info.description) },
    authentication(document),
    conventions(document),
    {
      id: 'client',
      title: 'Client for Node',
      html: `<p>${inline('`fingerpost/client` has types for every answer, retries what may be retried, and reads pages as they are needed.')}</p>${codeBlock(CLIENT_SNIPPET)}`,
    },
    { id: 'claims', title: 'Claims and facts', html: `${paragraphs(CLAIMS)}${jsonBlock(SAFE_RULE, 'A safe rule')}` },
    errors(),
    ...groups(document),
    webhookEvents(document),
    schemas(document),
    { id: 'attribution', title: 'Data and attribution', html: attribution() },
  ]
  const nav = parts.map(
    ({ id, title, links = [] }) =>
      `<li><a href="#${id}">${escapeHtml(title)}</a>${links.length === 0 ? '' : `<ul>${links.map((one) => `<li>${one}</li>`).join('')}</ul>`}</li>`,
  )
  const sections = parts.map(
    ({ id, title, html }) => `<section class="part" id="${id}"><h2>${escapeHtml(title)}</h2>${html}</section>`,
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(info.title)} API reference</title><style>${STYLE}</style></head>
<body><a class="skip" href="#main">Skip to the content</a>
<nav aria-label="Contents"><p class="brand">${escapeHtml(info.title)} <span>API ${escapeHtml(info.version)}</span></p><p class="files"><a href="/openapi.json">OpenAPI 3.1</a> <a href="/postman.json">Postman</a></p><ul>${nav.join('')}</ul></nav>
<main id="main"><h1>${escapeHtml(info.title)} API reference</h1>${sections.join('')}</main></body></html>
`
}

function authentication({ components }: OpenApiDocument): Part {
  const rows = Object.entries(components.securitySchemes).map(
    ([name, { description = '' }]) =>
      `<tr><td><code>${escapeHtml(name)}</code></td><td>${inline(description)}</td></tr>`,
  )
  const scopes = SCOPES.map((scope) => `<code>${escapeHtml(scope)}</code>`).join(' ')
  return {
    id: 'authentication',
    title: 'Keys and scopes',
    html: `<table><thead><tr><th>Name</th><th>Use</th></tr></thead><tbody>${rows.join('')}</tbody></table>
<p>${inline('The key decides workspace and environment: `live` or `test`. Secret keys have every scope but `keys:write`, unless they were made with others:')}</p><p class="scopes">${scopes}</p>
<p>${inline('A key that is missing, malformed, unknown, expired or revoked gets one and the same 401. Revocation takes effect within a second.')}</p>`,
  }
}

function conventions({ components }: OpenApiDocument): Part {
  const rows = Object.entries(components.headers).map(([name, { description, schema }]) =>
    memberRow(name, schema, false, '', description),
  )
  return {
    id: 'conventions',
    title: 'Headers and limits',
    html: `<p>${inline('Checks come in this order: endpoint, method, key, rate limit, scope and origin, media type and size, parsing, what the body may not say, validation, existence, state. Only the first failure is told.')}</p>
<h3>Headers of answers</h3><dl class="members">${rows.join('')}</dl>`,
  }
}

function errors(): Part {
  const rows = (Object.keys(ERRORS) as ErrorCode[]).map(
    (code) =>
      `<tr id="error-${anchor(code)}"><td>${ERRORS[code][0]}</td><td><code>${code}</code></td><td>${inline(WHEN[code])}</td></tr>`,
  )
  const example = { error: { code: 'validation_error', message: 'Must be at most 100.', field: 'limit' } }
  return {
    id: 'errors',
    title: 'Errors',
    html: `<div class="columns"><div class="prose"><table><thead><tr><th>Status</th><th>Code</th><th>When</th></tr></thead><tbody>${rows.join('')}</tbody></table></div><div class="samples">${jsonBlock(example, 'Every refusal')}</div></div>`,
  }
}

function groups(document: OpenApiDocument): Part[] {
  const endpoints = [...endpointsOf(document)]
  return document.tags.map(({ name, description }) => {
    const own = endpoints.filter(({ operation }) => operation.tags.includes(name))
    return {
      id: `group-${anchor(name)}`,
      title: `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`,
      html: `<p>${inline(description)}</p>${own.map((one) => endpointSection(document, one)).join('')}`,
      links: own.map(
        ({ method, operation }) =>
          `<a href="#${endpointAnchor(operation)}">${methodBadge(method)} ${escapeHtml(operation.summary)}</a>`,
      ),
    }
  })
}

function webhookEvents({ webhooks }: OpenApiDocument): Part {
  const shown = Object.entries(webhooks).map(([type, { post }]) => {
    const { schema, example } = post.requestBody?.content['application/json'] ?? { schema: {}, example: null }
    const data = schema.properties?.data
    return `<section class="endpoint" id="event-${anchor(type)}"><h3><code>${escapeHtml(type)}</code></h3><div class="columns"><div class="prose"><p>${inline(post.description ?? '')}</p>${
      data === undefined ? '' : `<h4>data</h4>${schemaMembers(data)}`
    }</div><div class="samples">${jsonBlock(example, 'Body')}</div></div></section>`
  })
  const headers = Object.values(webhooks)[0]?.post.parameters ?? []
  return {
    id: 'webhook-events',
    title: 'Webhook events',
    html: `<p>${inline('A delivery is a POST with one of these bodies. It has succeeded when a 2xx comes within ten seconds. The same event may come more than once: drop what you have seen by `idempotencyKey`, and ignore types you do not know.')}</p>
<h3>Headers</h3><dl class="members">${headers.map(({ name, schema, description }) => memberRow(name, schema, false, '', description)).join('')}</dl>
<h3>Check the signature</h3><p>${inline('Over the raw body, before it is parsed; the key is the whole text of the secret, `whsec_` included.')}</p>
${VERIFY_SNIPPETS.map(({ language, code }, i) => `<details class="snippet"${i === 0 ? ' open' : ''}><summary>${escapeHtml(language)}</summary>${codeBlock(code)}</details>`).join('')}
${shown.join('')}`,
    links: Object.keys(webhooks).map((type) => `<a href="#event-${anchor(type)}">${escapeHtml(type)}</a>`),
  }
}

function schemas({ components }: OpenApiDocument): Part {
  const names = Object.entries(components.schemas)
  return {
    id: 'schemas',
    title: 'Schemas',
    html: names.map(([name, schema]) => schemaSection(name, schema)).join(''),
    links: names.map(([name]) => `<a href="#schema-${anchor(name)}">${escapeHtml(name)}</a>`),
  }
}

function attribution(): string {
  const rows = ATTRIBUTED.map(([source, asks]) => `<tr><td>${inline(source)}</td><td>${inline(asks)}</td></tr>`)
  return `<p>${inline(ATTRIBUTION)}</p><table><thead><tr><th>Source</th><th>Named as</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
}
