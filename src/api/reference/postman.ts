// The document as a Postman collection (format 2.1): one folder per group, one request per endpoint, with its example.

import { type Endpoint, endpointsOf, type OpenApiDocument } from './openapi.ts'

const FORMAT = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json'
const JSON_TYPE = 'application/json'

export function postmanCollection(document: OpenApiDocument): object {
  const endpoints = [...endpointsOf(document)]
  return {
    info: {
      name: document.info.title,
      description: document.info.description,
      version: document.info.version,
      schema: FORMAT,
    },
    variable: [
      { key: 'baseUrl', value: 'http://127.0.0.1:8080' },
      { key: 'secretKey', value: '' },
      { key: 'operatorToken', value: '' },
    ],
    auth: bearer('secretKey'),
    item: document.tags.map(({ name, description }) => ({
      name,
      description,
      item: endpoints.filter(({ operation }) => operation.tags.includes(name)).map(request),
    })),
  }
}

const bearer = (variable: string) => ({
  type: 'bearer',
  bearer: [{ key: 'token', value: `{{${variable}}}`, type: 'string' }],
})

function request({ method, path, operation }: Endpoint) {
  const { parameters = [], requestBody, security } = operation
  const body = requestBody?.content[JSON_TYPE]?.example
  const segments = path.slice(1).replaceAll(/\{(\w+)\}/g, ':$1')
  const own =
    security.length === 0 ? { type: 'noauth' } : 'operatorToken' in (security[0] ?? {}) ? bearer('operatorToken') : null
  return {
    name: operation.summary,
    request: {
      method,
      ...(operation.description === undefined ? {} : { description: operation.description }),
      ...(own === null ? {} : { auth: own }),
      header: [
        ...(requestBody === undefined ? [] : [{ key: 'Content-Type', value: JSON_TYPE }]),
        ...parameters
          .filter((one) => one.in === 'header')
          .map(({ name, description }) => ({ key: name, value: '', disabled: true, description })),
      ],
      ...(body === undefined
        ? {}
        : { body: { mode: 'raw', raw: JSON.stringify(body, null, 2), options: { raw: { language: 'json' } } } }),
      url: {
        raw: `{{baseUrl}}/${segments}`,
        host: ['{{baseUrl}}'],
        path: segments.split('/'),
        query: parameters
          .filter((one) => one.in === 'query')
          .map(({ name, required, example, description }) => ({
            key: name,
            value: example ?? '',
            disabled: !required && example === undefined,
            description,
          })),
        variable: parameters
          .filter((one) => one.in === 'path')
          .map(({ name, description, schema }) => ({ key: name, value: schema.examples?.[0] ?? '', description })),
      },
    },
  }
}
