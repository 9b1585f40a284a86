// What a test does to a server besides loading it: the rules before, and the wait until nothing is under way.

import { homePartition } from '../../src/domain/ids.ts'
import { pause, until } from '../helpers/processes.ts'
import type { Server } from '../helpers/server.ts'
import { call, read, readJson } from './http.ts'
import type { Load } from './load.ts'
import { RULES } from './rules.ts'

const QUIET_MS_MAX = 120_000
const PROBES_AT_ONCE = 8
const RETRY_MS = 1_000

/** Creates each rule once, however often that has to be tried. */
export async function createRules({ agent }: Load, { url, keys }: Pick<Server, 'url' | 'keys'>): Promise<void> {
  const headers = { authorization: `Bearer ${keys.secret}`, 'content-type': 'application/json' }
  for (const { holds: _, ...rule } of RULES) {
    for (;;) {
      const answer = await call(agent, { method: 'POST', url: `${url}/v1/rules`, headers, body: JSON.stringify(rule) })
      if (answer.status === 201) break
      if (answer.status !== 0 && answer.status !== 503) throw new Error(`a rule: ${JSON.stringify(answer)}`)
      await pause(RETRY_MS)
      const { data } = await readJson<{ data: { name: string }[] }>(agent, `${url}/v1/rules`, keys.secret)
      if (data.some(({ name }) => name === rule.name)) break
    }
  }
}

/** The sum of a metric over its labels. */
async function metric(load: Load, url: string, name: string): Promise<number> {
  const answer = await read(load.agent, `${url}/metrics`, {})
  const samples = answer.text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

/**
 * Identifies unknown devices until every partition has decided one: what each accepted before is decided then, too.
 * A new visitor's id tells which partition decided it. Resolves with the milliseconds it took.
 */
export async function everyPartitionDecides(load: Load, url: string, partitions: number): Promise<number> {
  const deciding = new Set<number>()
  async function probe(): Promise<void> {
    const { answer } = await load.probe()
    if (answer !== null) deciding.add(homePartition(answer.visitorId, partitions))
  }
  return await until(`every partition of ${url} decides`, QUIET_MS_MAX, async () => {
    await Promise.all(Array.from({ length: PROBES_AT_ONCE }, probe))
    return deciding.size === partitions
  })
}

/** Waits until everything accepted is decided and in ClickHouse, with nothing put aside by any of the processes. */
export async function quiet(
  load: Load,
  servers: readonly Pick<Server, 'url' | 'logs'>[],
  partitions: number,
): Promise<void> {
  const sum = async (name: string): Promise<number> => {
    let total = 0
    for (const { url } of servers) total += await metric(load, url, name)
    return total
  }
  // Twice: between an owner that gives a partition up, as many do whose Redis was failed over, and the one that has taken it over nobody
  // knows of what ClickHouse lacks. Who decides after that moment does.
  for (let pass = 0; pass < 2; pass++) {
    await everyPartitionDecides(load, servers.map(({ url }) => url).join(), partitions)
    await until('everything is in ClickHouse', QUIET_MS_MAX, async () => (await sum('fingerpost_recent_events')) === 0)
  }
  for (const name of ['fingerpost_dead_letters_total', 'fingerpost_sink_quarantined_total']) {
    const count = await sum(name)
    if (count > 0)
      throw new Error(`${name} is ${count}:\n${servers.map(({ logs }) => logs().slice(-2_000)).join('\n')}`)
  }
}
