// A Prometheus that scrapes servers under test, and what it says of rules and queries.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './port.ts'
import { temporaryFolder } from './server.ts'

export interface Rule {
  readonly type: 'alerting' | 'recording'
  readonly name: string
  readonly query: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Of an alert. */
  readonly state?: 'inactive' | 'pending' | 'firing'
  readonly health: string
  readonly lastError?: string
}

export interface Result {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [number, string]
}

export interface PrometheusOptions {
  /** `host:port` of each process. */
  readonly targets?: readonly string[]
  /** More jobs than `fingerpost`, by name: `host:port` of each process. */
  readonly jobs?: Readonly<Record<string, readonly string[]>>
  readonly rulesFile?: string
  readonly everySeconds?: number
}

const READY_MS_MAX = 60_000

export type PrometheusServer = Awaited<ReturnType<typeof startPrometheus>>

export async function startPrometheus({ targets = [], jobs, rulesFile, everySeconds = 1 }: PrometheusOptions) {
  const dir = temporaryFolder()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const every = `${everySeconds}s`
  const config = {
    global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: every },
    rule_files: rulesFile === undefined ? [] : [rulesFile],
    scrape_configs: Object.entries({ fingerpost: targets, ...jobs }).map(([job, its]) => ({
      job_name: job,
      static_configs: [{ targets: its }],
    })),
  }
  // JSON is YAML.
  const file = join(dir, 'prometheus.yml')
  writeFileSync(file, JSON.stringify(config))
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]
  const child = spawn('prometheus', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += chunk
  })
  const ended = once(child, 'exit')

  async function get<T>(path: string, query: Readonly<Record<string, string>> = {}): Promise<T> {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(query)}`)
    const body = (await response.json()) as { status: string; data: T; error?: string }
    if (body.status !== 'success') throw new Error(`${body.error}: ${JSON.stringify(query)}`)
    return body.data
  }

  const rules = async (): Promise<readonly Rule[]> => {
    const { groups } = await get<{ groups: { rules: Rule[] }[] }>('rules')
    return groups.flatMap((group) => group.rules)
  }

  const until = performance.now() + READY_MS_MAX
  while (
    !(await fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null || performance.now() > until)
      throw new Error(`Prometheus did not start: ${said.slice(-2_000)}`)
    await sleep(100)
  }
  return {
    url,
    rules,
    query: async (query: string) => (await get<{ result: readonly Result[] }>('query', { query })).result,
    range: async (query: string, start: number, end: number, step: number) =>
      (
        await get<{
          result: readonly { metric: Record<string, string>; values: readonly (readonly [number, string])[] }[]
        }>('query_range', { query, start: String(start), end: String(end), step: String(step) })
      ).result,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
