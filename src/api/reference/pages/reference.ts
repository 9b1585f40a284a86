// The reference as pages: what holds of every call, a page per resource, errors, webhook events, schemas.

import { ERRORS, type ErrorCode } from '../../../domain/errors.ts'
import { SCOPES } from '../../../domain/workspace.ts'
import { type Endpoint, endpointsOf, type OpenApiDocument } from '../openapi.ts'
import { WHEN } from '../refusals.ts'
import { CLIENT_SNIPPET, VERIFY_SNIPPETS } from '../snippets.ts'
import { ATTRIBUTED, ATTRIBUTION, CLAIMS, SAFE_RULE } from '../words.ts'
import { endpointNames, endpointSection, methodBadge, pathCode } from './endpoint.ts'
import { codeBlock, escapeHtml, inline, jsonBlock, paragraphs, table } from './html.ts'
import {
  type DocPage,
  endpointAddress,
  endpointAnchor,
  errorAnchor,
  eventAnchor,
  groupPath,
  PATHS,
  type SearchEntry,
  schemaAnchor,
} from './page.ts'
import { memberNames, memberRow, schemaMembers, schemaSection } from './schema.ts'

/** A page of parts under headings. */
interface Part {
  readonly id: string
  readonly title: string
  readonly html: string
}

const titleOf = (tag: string): string => `${tag.slice(0, 1).toUpperCase()}${tag.slice(1)}`

const endpointsUnder = (document: OpenApiDocument, tag: string): Endpoint[] =>
  [...endpointsOf(document)].filter(({ operation }) => operation.tags.includes(tag))

export function overviewPage(document: OpenApiDocument): DocPage {
  const parts: readonly Part[] = [
    { id: 'endpoints', title: 'Endpoints', html: endpointTables(document) },
    authentication(document),
    conventions(document),
    {
      id: 'client',
      title: 'Client for Node',
      html: `<p>${inline('`fingerpost/client` has types for every answer, retries what may be retried, and reads pages as they are needed.')}</p>${codeBlock(CLIENT_SNIPPET)}`,
    },
    { id: 'claims', title: 'Claims and facts', html: `${paragraphs(CLAIMS)}${jsonBlock(SAFE_RULE, 'A safe rule')}` },
    { id: 'attribution', title: 'Data and attribution', html: attribution() },
  ]
  const title = 'API reference'
  return {
    path: PATHS.api,
    title,
    summary: 'Keys, headers, limits, and every endpoint of the API.',
    sections: parts.map(({ id, title }) => ({ id, label: escapeHtml(title) })),
    found: () => [
      { kind: 'Reference', title, detail: '', anchor: '', names: [] },
      ...parts.map(
        ({ id, title: detail }): SearchEntry => ({
          kind: 'Reference',
          title: detail,
          detail: title,
          anchor: id,
          names: [],
        }),
      ),
    ],
    html: () =>
      `<div class="intro">${paragraphs(document.info.description)}</div>${parts
        .map(
          ({ id, title, html }) =>
            `<section class="part" id="${id}"><h2><a href="#${id}">${escapeHtml(title)}</a></h2>${html}</section>`,
        )
        .join('')}`,
  }
}

function endpointTables(document: OpenApiDocument): string {
  return document.tags
    .map(({ name }) => {
      const rows = endpointsUnder(document, name).map(
        ({ method, path, operation }) =>
          `<li><a href="${endpointAddress(operation)}"><span class="at">${methodBadge(method)} ${pathCode(path)}</span> <span class="what">${escapeHtml(operation.summary)}</span></a></li>`,
      )
      return `<h3><a href="${groupPath(name)}">${escapeHtml(titleOf(name))}</a></h3><ul class="endpoints">${rows.join('')}</ul>`
    })
    .join('')
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
    html: `${table(['Name', 'Use'], rows)}
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

function attribution(): string {
  const rows = ATTRIBUTED.map(([source, asks]) => `<tr><td>${inline(source)}</td><td>${inline(asks)}</td></tr>`)
  return `<p>${inline(ATTRIBUTION)}</p>${table(['Source', 'Named as'], rows)}`
}

/** One per resource. */
export function resourcePages(document: OpenApiDocument): DocPage[] {
  return document.tags.map(({ name, description }) => {
    const own = endpointsUnder(document, name)
    const title = titleOf(name)
    return {
      path: groupPath(name),
      title,
      summary: description,
      sections: own.map(({ method, operation }) => ({
        id: endpointAnchor(operation),
        label: `${methodBadge(method)} ${escapeHtml(operation.summary)}`,
      })),
      found: () => [
        { kind: 'Reference', title, detail: description, anchor: '', names: [] },
        ...own.map((endpoint) => ({
          kind: 'Endpoint',
          title: endpoint.operation.summary,
          detail: `${endpoint.method} ${endpoint.path}`,
          anchor: endpointAnchor(endpoint.operation),
          names: endpointNames(document, endpoint),
        })),
      ],
      html: () =>
        `<p class="lead">${inline(description)}</p>${own.map((one) => endpointSection(document, one)).join('')}`,
    }
  })
}

export function errorsPage(): DocPage {
  const codes = Object.keys(ERRORS) as ErrorCode[]
  const title = 'Errors'
  const summary = 'Every code that a refusal can have, and when it comes.'
  const example = { error: { code: 'validation_error', message: 'Must be at most 100.', field: 'limit' } }
  const rows = codes.map(
    (code) =>
      `<tr id="${errorAnchor(code)}"><td>${ERRORS[code][0]}</td><td><code>${code}</code></td><td>${inline(WHEN[code])}</td></tr>`,
  )
  return {
    path: PATHS.errors,
    title,
    summary,
    sections: [],
    found: () => [
      { kind: 'Reference', title, detail: summary, anchor: '', names: [] },
      ...codes.map((code) => ({
        kind: 'Error',
        title: code,
        detail: `${ERRORS[code][0]}`,
        anchor: errorAnchor(code),
        names: [],
      })),
    ],
    html: () =>
      `<p class="lead">${inline('Decide by `code`; `message` is for people and may change. `docs` leads to the line of the code on this page.')}</p><div class="columns"><div class="prose">${table(['Status', 'Code', 'When'], rows)}</div><div class="samples">${jsonBlock(example, 'Every refusal')}</div></div>`,
  }
}

export function webhookEventsPage({ webhooks }: OpenApiDocument): DocPage {
  const title = 'Webhook events'
  const summary = 'What webhooks are told of, with the body of each.'
  const bodyOf = (type: string) =>
    webhooks[type]?.post.requestBody?.content['application/json'] ?? { schema: {}, example: null }
  const section = (type: string): string => {
    const { schema, example } = bodyOf(type)
    const data = schema.properties?.data
    return `<section class="endpoint" id="${eventAnchor(type)}"><h2><a href="#${eventAnchor(type)}"><code>${escapeHtml(type)}</code></a></h2><div class="columns"><div class="prose"><p>${inline(webhooks[type]?.post.description ?? '')}</p>${
      data === undefined ? '' : `<h3>data</h3>${schemaMembers(data)}`
    }</div><div class="samples">${jsonBlock(example, 'Body')}</div></div></section>`
  }
  const types = Object.keys(webhooks)
  const headers = Object.values(webhooks)[0]?.post.parameters ?? []
  return {
    path: PATHS.events,
    title,
    summary,
    sections: types.map((type) => ({ id: eventAnchor(type), label: escapeHtml(type) })),
    found: () => [
      { kind: 'Reference', title, detail: summary, anchor: '', names: headers.map(({ name }) => name) },
      { kind: 'Reference', title: 'Check the signature', detail: title, anchor: 'signature', names: [] },
      ...types.map((type) => ({
        kind: 'Webhook event',
        title: type,
        detail: '',
        anchor: eventAnchor(type),
        names: memberNames(bodyOf(type).schema),
      })),
    ],
    html: () =>
      `<p class="lead">${inline('A delivery is a POST with one of these bodies. It has succeeded when a 2xx comes within ten seconds. The same event may come more than once: drop what you have seen by `idempotencyKey`, and ignore types you do not know.')}</p>
<section class="part"><h2>Headers</h2><dl class="members">${headers.map(({ name, schema, description }) => memberRow(name, schema, false, '', description)).join('')}</dl></section>
<section class="part" id="signature"><h2><a href="#signature">Check the signature</a></h2><p>${inline('Over the raw body, before it is parsed; the key is the whole text of the secret, `whsec_` included.')}</p>
${VERIFY_SNIPPETS.map(({ language, code }, i) => `<details class="snippet"${i === 0 ? ' open' : ''}><summary>${escapeHtml(language)}</summary>${codeBlock(code)}</details>`).join('')}</section>
${types.map(section).join('')}`,
  }
}

export function schemasPage({ components }: OpenApiDocument): DocPage {
  const named = Object.entries(components.schemas)
  const title = 'Schemas'
  const summary = 'What endpoints and webhook events have in common.'
  return {
    path: PATHS.schemas,
    title,
    summary,
    sections: named.map(([name]) => ({ id: schemaAnchor(name), label: escapeHtml(name) })),
    found: () => [
      { kind: 'Reference', title, detail: summary, anchor: '', names: [] },
      ...named.map(([name, schema]) => ({
        kind: 'Schema',
        title: name,
        detail: '',
        anchor: schemaAnchor(name),
        names: memberNames(schema),
      })),
    ],
    html: () =>
      `<p class="lead">${inline(summary)}</p>${named.map(([name, schema]) => schemaSection(name, schema)).join('')}`,
  }
}
