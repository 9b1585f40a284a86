// How the service fares: whether it accepts, how fast it decides, how far behind anything is, how old its data is, which version runs.

import { useRef } from 'preact/hooks'
import { call, RefusedError, request } from '../../lib/api.ts'
import { bytes, percent, span, wholeText } from '../../lib/format.ts'
import { useEvery, useLoadBy } from '../../lib/load.ts'
import { type AddressSource, type Readiness, readReadiness } from '../../lib/readiness.ts'
import { saveFile } from '../../lib/save-file.ts'
import type { Meta } from '../../lib/types.ts'
import { AdviceList } from '../../ui/advice.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Tiles } from '../../ui/tiles.tsx'
import { FactList, MomentText } from '../../ui/words.tsx'
import { figuresOf, type ProcessFigures, readScrape, type Scrape, type Stage, type ThreadFigures } from './metrics.ts'

const LOOK_EVERY_MS = 5_000

interface State {
  readonly meta: Meta
  readonly ready: Readiness
  /** null: they are told at the port for operators (`http.adminPort`). */
  readonly figures: ProcessFigures | null
}

export function System() {
  const before = useRef<Scrape | null>(null)
  const loaded = useLoadBy<State>('system', async (signal) => {
    const [meta, ready, metrics] = await Promise.all([
      call<Meta>('/v1/meta', { signal }),
      readReadiness(signal),
      readMetrics(signal),
    ])
    if (metrics === null) return { meta, ready, figures: null }
    const samples = readScrape(metrics, Date.now())
    const figures = figuresOf(samples, before.current)
    before.current = samples
    return { meta, ready, figures }
  })
  useEvery(LOOK_EVERY_MS, loaded)
  return (
    <Page
      title="System"
      about="Of the process that answers, every five seconds. Prometheus and the dashboards in deploy/grafana see all of them, over time."
      actions={
        <button
          type="button"
          disabled={loaded.data === undefined}
          onClick={() =>
            saveFile('fingerpost-diagnostics.json', `${JSON.stringify(loaded.data, null, 2)}\n`, 'application/json')
          }
        >
          Save diagnostics
        </button>
      }
    >
      <Shown of={loaded}>
        {({ meta, ready, figures }) => (
          <>
            <AdviceList of={ready.advice ?? []} />
            {figures === null ? (
              <p class="quiet">
                {ready.status === 'ready' ? 'It accepts.' : 'It does not accept.'} Figures and details are at the port
                for operators (<code>http.adminPort</code>).
              </p>
            ) : (
              <Now figures={figures} ready={ready} />
            )}
            <div class="columns">
              <div class="stack">
                <Card title="What it needs">
                  <Checks ready={ready} />
                </Card>
                <Card title="Threads">
                  <Threads of={figures?.threads ?? []} />
                </Card>
              </div>
              <div class="stack">
                <Card title="An identification, by stage">
                  <Stages of={figures?.stages ?? []} />
                </Card>
                <Card title="What is known of addresses">
                  <Sources of={ready.ipSources ?? {}} />
                </Card>
                <Card title="What runs">
                  <FactList
                    of={[
                      ...Object.entries(meta.build),
                      ['API', meta.apiVersion],
                      ['SDK', meta.sdk.version],
                      ['Roles', ready.roles?.join(', ')],
                      ['Partitions', ready.partitions],
                      ['Started', figures?.startedAt ? <MomentText key="s" at={figures.startedAt} relative /> : null],
                    ]}
                  />
                </Card>
              </div>
            </div>
          </>
        )}
      </Shown>
    </Page>
  )
}

async function readMetrics(signal: AbortSignal): Promise<string | null> {
  try {
    return await (await request('/metrics', { signal })).text()
  } catch (error) {
    if (error instanceof RefusedError && error.status === 404) return null
    throw error
  }
}

function Now({ figures, ready }: { readonly figures: ProcessFigures; readonly ready: Readiness }) {
  const { decidedPerSecond, refusedPerSecond } = figures
  const rate = (value: number | null) =>
    value === null ? '–' : `${value < 10 ? value.toFixed(1) : wholeText(Math.round(value))} /s`
  const tiles = [
    [
      'Accepts',
      ready.status === 'ready' ? 'yes' : 'no',
      ready.status === 'ready' ? 'every dependency serves' : 'see what it needs',
    ],
    ['Decided', rate(decidedPerSecond), `${wholeText(figures.pending)} wait`],
    ['Refused', rate(refusedPerSecond), 'before they were accepted'],
    ['Oldest undecided', span(figures.oldestPendingSeconds), 'of what is accepted'],
    ['Behind in history', span(figures.oldestUnsunkSeconds), 'oldest event not in ClickHouse'],
    ['Webhooks waiting', wholeText(figures.webhookBacklog), `the oldest for ${span(figures.webhookOldestSeconds)}`],
    ['Rules', `revision ${figures.rulesRevision}`, 'what this process decides by'],
    ['Memory', bytes(figures.residentBytes), `log ${bytes(figures.logBytes)}, state ${bytes(figures.kvBytes)} on disk`],
  ] as const
  return <Tiles of={tiles} />
}

const CHECKS: Readonly<Record<string, string>> = { draining: 'taking requests', kv: 'state', roles: 'every role' }

function Checks({ ready }: { readonly ready: Readiness }) {
  const { checks = {}, clickhouse, disk } = ready
  const rows = [
    ...Object.entries(checks).map(([name, problem]) => [CHECKS[name] ?? name, problem] as const),
    ...(clickhouse === undefined
      ? []
      : [['ClickHouse', clickhouse.answers === false ? 'does not answer; nothing accepted is lost' : null] as const]),
  ]
  return (
    <>
      <ul class="plain-list">
        {rows.map(([name, problem]) => (
          <li key={name} class="row spread">
            <strong>{name}</strong>
            <span class="chip" data-kind={problem === null ? 'good' : 'bad'}>
              {problem ?? 'serves'}
            </span>
          </li>
        ))}
      </ul>
      {disk !== undefined && (
        <p class="quiet">
          {bytes(disk.freeBytes)} free on disk; below {bytes(disk.freeBytesMin)} nothing is accepted.
        </p>
      )}
    </>
  )
}

const seconds = (value: number | null): string => {
  if (value === null) return 'none yet'
  if (value === Number.POSITIVE_INFINITY) return 'more than 15 s'
  return value < 1 ? `≤ ${Number((value * 1_000).toPrecision(2))} ms` : `≤ ${value} s`
}

function Stages({ of: stages }: { readonly of: readonly Stage[] }) {
  if (stages.length === 0) return <Empty title="Nothing was decided here yet" />
  return (
    <Table label="Stages" head={['Stage', { number: 'Half of them' }, { number: '99 of 100' }]}>
      {stages.map(({ stage, p50, p99 }) => (
        <tr key={stage}>
          <th scope="row">{stage}</th>
          <td class="number">{seconds(p50)}</td>
          <td class="number">{seconds(p99)}</td>
        </tr>
      ))}
    </Table>
  )
}

function Threads({ of: threads }: { readonly of: readonly ThreadFigures[] }) {
  return (
    <Table label="Threads" head={['Thread', { number: 'Busy' }, { number: 'Heap' }]}>
      {threads.map(({ shard, utilization, heapBytes, heapBytesMax }) => (
        <tr key={shard}>
          <th scope="row">{shard === 'main' ? 'main' : `shard ${shard}`}</th>
          <td class="number">{percent(utilization)}</td>
          <td class="number">
            {bytes(heapBytes)} of {bytes(heapBytesMax)}
          </td>
        </tr>
      ))}
    </Table>
  )
}

function Sources({ of: sources }: { readonly of: Readonly<Record<string, AddressSource | null>> }) {
  const all = Object.entries(sources)
  const missing = all.filter(([, source]) => source === null).map(([name]) => name)
  const there = all.filter((one): one is [string, AddressSource] => one[1] !== null)
  return (
    <>
      {there.length > 0 && (
        <Table label="Sources" head={['Source', 'Age', { number: 'Entries' }]}>
          {there.map(([name, { ageSeconds, entries, failure }]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{failure ?? (ageSeconds === null ? 'not known' : span(ageSeconds))}</td>
              <td class="number">{wholeText(entries)}</td>
            </tr>
          ))}
        </Table>
      )}
      {missing.length > 0 && (
        <p class="hint">
          No data for {missing.join(', ')}: what rests on it is undetermined. The guide on{' '}
          <a href="/docs/guides/ip-intelligence">IP intelligence</a> says where to get it.
        </p>
      )}
    </>
  )
}
