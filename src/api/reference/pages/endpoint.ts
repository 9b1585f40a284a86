// One endpoint on the page: what it takes, what it answers, why it may refuse, and a call to copy.

import type { ErrorCode } from '../../../domain/errors.ts'
import {
  type Endpoint,
  type OpenApiDocument,
  type Operation,
  type Parameter,
  responseOf,
  type Schema,
} from '../openapi.ts'
import { codeBlock, escapeHtml, inline, jsonBlock } from './html.ts'
import { endpointAnchor, errorAddress } from './page.ts'
import { kindOf, memberNames, memberRow, schemaMembers } from './schema.ts'

const JSON_TYPE = 'application/json'

export const methodBadge = (method: string): string =>
  `<span class="method ${method.toLowerCase()}">${method === 'DELETE' ? 'DEL' : escapeHtml(method)}</span>`

export const pathCode = (path: string): string =>
  `<code>${escapeHtml(path).replaceAll(/\{(\w+)\}/g, '<var>{$1}</var>')}</code>`

/** Of everything that it takes, and answers under no name of its own. */
export function endpointNames(document: OpenApiDocument, { operation }: Endpoint): string[] {
  const { parameters = [], requestBody, responses } = operation
  const answers = Object.values(responses).map((of) => responseOf(document, of).content?.[JSON_TYPE])
  const good = answers.filter((media) => Object.keys(media?.examples ?? {}).length === 0)
  return [
    ...parameters.map(({ name }) => name),
    ...[requestBody?.content[JSON_TYPE], ...good].flatMap((media) =>
      media === undefined ? [] : memberNames(media.schema),
    ),
  ]
}

export function endpointSection(document: OpenApiDocument, endpoint: Endpoint): string {
  const { method, path, operation } = endpoint
  const { parameters = [], requestBody } = operation
  return `<section class="endpoint" id="${endpointAnchor(operation)}">
<h2><a href="#${endpointAnchor(operation)}">${escapeHtml(operation.summary)}</a></h2>
<p class="route">${methodBadge(method)} ${pathCode(path)}</p>
<div class="columns"><div class="prose">
${operation.description === undefined ? '' : `<p>${inline(operation.description)}</p>`}
<p class="access">${accessOf(operation)}</p>
${(['path', 'query', 'header'] as const).map((place) => parameterTable(parameters, place)).join('')}
${requestBody === undefined ? '' : bodySection(requestBody)}
${answersSection(document, operation)}
</div><div class="samples">${codeBlock(curlSampleOf(endpoint), 'Request')}${exampleAnswers(document, operation)}</div></div>
</section>`
}

function accessOf({ security }: Operation): string {
  if (security.length === 0) return 'Needs no key.'
  const names = security.flatMap((one) => Object.entries(one))
  const scopes = [...new Set(names.flatMap(([, of]) => of))]
  if (names.some(([name]) => name === 'operatorToken')) return 'Needs the <b>operator token</b>.'
  const keys = names.some(([name]) => name === 'publicKey') ? 'a public or secret key' : 'a secret key'
  if (scopes.length === 0) return `Needs <b>any key</b>.`
  return `Needs ${keys} with the scope <code>${escapeHtml(scopes.join(' '))}</code>.`
}

const PLACES = { path: 'Path', query: 'Query', header: 'Headers' } as const

function parameterTable(parameters: readonly Parameter[], place: Parameter['in']): string {
  const rows = parameters.filter((one) => one.in === place)
  if (rows.length === 0) return ''
  const shown = rows.map(({ name, schema, required, description }) =>
    memberRow(name, schema, required, '', description),
  )
  return `<h3>${PLACES[place]}</h3><dl class="members">${shown.join('')}</dl>`
}

function bodySection({ required, content }: NonNullable<Operation['requestBody']>): string {
  const types = Object.keys(content).map((type) => `<code>${escapeHtml(type)}</code>`)
  const schema = content[JSON_TYPE]?.schema
  return `<h3>Body</h3><p class="bounds">${types.join(' or ')}${required ? '' : ', may be empty'}</p>${schema === undefined ? '' : schemaMembers(schema) || `<p>${kindOf(schema)}</p>`}`
}

function answersSection(document: OpenApiDocument, { responses }: Operation): string {
  const good: string[] = []
  const bad: string[] = []
  for (const [status, of] of Object.entries(responses)) {
    const { description, headers = {}, content = {} } = responseOf(document, of)
    const codes = Object.keys(content[JSON_TYPE]?.examples ?? {})
    if (codes.length > 0) {
      for (const code of codes) {
        bad.push(
          `<tr><td>${status}</td><td><a href="${errorAddress(code as ErrorCode)}"><code>${escapeHtml(code)}</code></a></td></tr>`,
        )
      }
      continue
    }
    const schema: Schema | undefined = Object.values(content)[0]?.schema
    const named = Object.keys(headers).filter((name) => !/^X-(?:Request|RateLimit)/.test(name))
    good.push(
      `<div class="answer"><p><b class="status">${escapeHtml(status)}</b> ${inline(description)} ${
        schema === undefined ? '' : kindOf(schema) === 'object' ? '' : kindOf(schema)
      }${named.length === 0 ? '' : `<span class="bounds"> Headers: ${named.map((name) => `<code>${escapeHtml(name)}</code>`).join(' ')}</span>`}</p>${
        schema === undefined ? '' : fold(schemaMembers(schema))
      }</div>`,
    )
  }
  const table = `<details class="errors"><summary>${bad.length} errors</summary><table><tbody>${bad.join('')}</tbody></table></details>`
  return `<h3>Answers</h3>${good.join('')}${bad.length === 0 ? '' : table}`
}

const fold = (html: string): string => (html === '' ? '' : `<details><summary>Members</summary>${html}</details>`)

function exampleAnswers(document: OpenApiDocument, { responses }: Operation): string {
  return Object.entries(responses)
    .map(([status, of]) => {
      const example = responseOf(document, of).content?.[JSON_TYPE]?.example
      return example === undefined ? '' : jsonBlock(example, `Answer ${status}`)
    })
    .join('')
}

/** In double quotes of a shell: a moment that is in range whenever the call is pasted. */
const daysAgo = (days: number): string => `$(date -u -d '${days} days ago' +%FT%TZ)`

/** The path with the examples of its parameters, for double quotes of a shell. */
function exampleUrl({ path, operation }: Endpoint): string {
  const { parameters = [] } = operation
  const filled = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) =>
    String(parameters.find((one) => one.in === 'path' && one.name === name)?.schema.examples?.[0] ?? whole),
  )
  const query = parameters
    .filter((one) => one.in === 'query' && (one.required || one.example !== undefined))
    .map(
      ({ name, schema, example }) =>
        `${name}=${example ?? (schema.format === 'date-time' ? daysAgo(name === 'from' ? 7 : 0) : (schema.examples?.[0] ?? '…'))}`,
    )
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`
}

/** For single quotes of a shell. A window's moments are made when the call is pasted: fixed ones are soon out of range. */
const shellJson = (body: unknown): string =>
  JSON.stringify(body, null, 2)
    .replaceAll("'", `'\\''`)
    .replaceAll(/"(since|until|from|to)": "\d{4}-[^"]*"/g, (_, name: string) => {
      const days = name === 'since' || name === 'from' ? 7 : 0
      return `"${name}": "'"${daysAgo(days)}"'"`
    })

function curlSampleOf(endpoint: Endpoint): string {
  const { method, operation } = endpoint
  // Some proxies refuse a POST without a length.
  const body = operation.requestBody?.content[JSON_TYPE]?.example ?? (method === 'POST' ? {} : undefined)
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}"$FINGERPOST_URL${exampleUrl(endpoint)}"`,
    ...(operation.security.length === 0
      ? []
      : [
          `  -H "Authorization: Bearer ${'operatorToken' in (operation.security[0] ?? {}) ? '$FINGERPOST_OPERATOR_TOKEN' : '$FINGERPOST_TEST_SECRET_KEY'}"`,
        ]),
    ...(body === undefined ? [] : [`  -H 'Content-Type: application/json'`, `  -d '${shellJson(body)}'`]),
  ]
  return lines.join(' \\\n')
}
