// A REST surface with lists, and what its tests do with them all the time.

import type { Test } from 'tap'
import { type Options, openServer } from '../helpers/rest-surface.ts'

export const PV = (n: number | string): string => `pv_${String(n).padStart(20, '0')}`

export async function openLists(t: Test, options: Options = {}) {
  const server = await openServer(t, options)
  const { send, secret: key } = server
  const make = async (name: string, type: string, more: Record<string, unknown> = {}) => {
    const made = await send('POST', '/v1/lists', { key, body: { name, type, ...more } })
    t.equal(made.status, 201, JSON.stringify(made.body))
    return made.body
  }
  const patch = (id: string, body: unknown) => send('PATCH', `/v1/lists/${id}/entries`, { key, body })
  const entries = async (id: string, query = '') => {
    const { status, body } = await send('GET', `/v1/lists/${id}/entries${query}`, { key })
    t.equal(status, 200, JSON.stringify(body))
    return body
  }
  const valuesOf = async (id: string, query = '') =>
    (await entries(id, query)).data.map(({ value }: { value: string }) => value)
  return { ...server, key, make, patch, entries, valuesOf }
}
