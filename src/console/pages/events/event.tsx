// One event: what was decided and why, who it was and how that is known, what the device and its network are.

import type { ComponentChild } from 'preact'
import { Link } from 'wouter-preact'
import { useAct } from '../../lib/act.ts'
import { call, can } from '../../lib/api.ts'
import { percent } from '../../lib/format.ts'
import type { PageProps } from '../../lib/later.tsx'
import { useLoad } from '../../lib/load.ts'
import type { Event } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Problem, Shown } from '../../ui/state.tsx'
import { FactList, Id, MomentText, VerdictChip } from '../../ui/words.tsx'
import { AddToList } from '../lists/add-to-list.tsx'
import { Deliveries } from './deliveries.tsx'
import { Raw } from './raw.tsx'
import { RecognitionCard } from './recognised.tsx'
import { SignalCards } from './signals.tsx'
import { Why } from './why.tsx'

export function EventPage({ id }: PageProps) {
  const path = `/v1/events/${encodeURIComponent(id)}`
  const loaded = useLoad<Event>(path)
  return (
    <Page title="Event" about={<code>{id}</code>} actions={<CopyCurl path={path} />}>
      <Shown of={loaded}>{(event) => <Whole event={event} reload={loaded.reload} />}</Shown>
    </Page>
  )
}

function Whole({ event, reload }: { readonly event: Event; readonly reload: () => void }) {
  const { device, ip } = event
  return (
    <>
      <section class="card">
        <div class="row spread">
          <div class="row">
            <VerdictChip of={event.verdict} />
            <span>
              {event.matchedRule === null ? (
                event.verdict === null ? (
                  'No rule was live.'
                ) : (
                  'No rule matched.'
                )
              ) : (
                <>
                  Decided by <Link href={`/rules/${event.matchedRule.id}`}>{event.matchedRule.name}</Link>
                  {event.challengeType === null ? '' : `, by ${event.challengeType}`}.
                </>
              )}
            </span>
          </div>
          <Label event={event} reload={reload} />
        </div>
        <FactList
          of={[
            ['Time', <MomentText key="t" at={event.timestamp} />],
            ['Visitor', <Id key="v" of={event.visitorId} whole />],
            ['Confidence', percent(event.confidence)],
            ...possibleOf(event),
            ['Account', event.linkedId],
            ['E-mail', event.email],
            ['Page', event.url],
            ['Key', event.request.keyKind],
            ['Tag', Object.keys(event.tag).length === 0 ? 'none' : event.tag],
          ]}
        />
        <div class="row">
          {can('rules:write') && (
            <Link class="button" href={`/rules/new?event=${event.requestId}`}>
              Make a rule of this
            </Link>
          )}
          {can('lists:write') && <AddToList values={{ visitor: event.visitorId }} />}
        </div>
        {event.evaluationError !== undefined && <p class="hint">It could not be decided: {event.evaluationError}</p>}
      </section>
      <div class="columns">
        <div class="stack">
          <Why event={event} />
          <RecognitionCard requestId={event.requestId} />
          <Card title="Device">
            <FactList
              of={[
                ['Platform', [device.platform, device.osVersion].filter(Boolean).join(' ')],
                ['Browser', device.browser],
                ['Kind', device.type],
                ['Model', device.model],
                ['Graphics', device.gpu],
                ['Screen', device.screen === null ? null : `${device.screen.w} × ${device.screen.h}`],
                ['Language', device.language],
                ['Time zone', device.timezone],
                ['App', device.appVersion],
              ]}
            />
          </Card>
          <Card title="Network">
            <FactList
              of={[
                ['Address', ip.address],
                ['Place', [ip.city, ip.region, ip.country].filter(Boolean).join(', ') || null],
                ['Time zone', ip.timezone],
                ['Provider', ip.asn === null ? null : `AS${ip.asn} ${ip.asnName ?? ''}`],
                ['Datacenter', ip.datacenter],
                ['Blocklists', ip.blocklists.length === 0 ? 'none' : ip.blocklists.join(', ')],
              ]}
            />
          </Card>
        </div>
        <div class="stack">
          <SignalCards event={event} />
          <Velocity event={event} />
        </div>
      </div>
      <Deliveries event={event} />
      <Raw of={event} />
    </>
  )
}

/** A row where a new visitor may be somebody known. */
const possibleOf = ({ possibleVisitorId: id, possibleConfidence: chance }: Event): [string, ComponentChild][] =>
  id === null
    ? []
    : [
        [
          'May be',
          <>
            <Id of={id} whole /> <span class="quiet">{percent(chance ?? 0)}, counted nowhere</span>
          </>,
        ],
      ]

function Label({ event, reload }: { readonly event: Event; readonly reload: () => void }) {
  const act = useAct()
  const label = (value: Event['label']) =>
    act.run(
      async () => {
        await call(`/v1/events/${event.requestId}`, { method: 'PATCH', body: { label: value } })
        reload()
      },
      value === null ? 'The label is gone.' : `Labelled ${value}.`,
    )
  return (
    <div class="row">
      <span class="quiet">{event.label === null ? 'No label' : `Labelled ${event.label}`}</span>
      {can('events:write') &&
        (['fraud', 'legitimate'] as const).map((value) => (
          <button
            key={value}
            type="button"
            class="slim"
            aria-pressed={event.label === value}
            disabled={act.isBusy}
            onClick={() => void label(event.label === value ? null : value)}
          >
            {value === 'fraud' ? 'Fraud' : 'Legitimate'}
          </button>
        ))}
      <Problem error={act.error} />
    </div>
  )
}

function Velocity({ event }: { readonly event: Event }) {
  const { velocity } = event
  if (velocity === undefined) return null
  const windows = (counts: Readonly<Record<string, number | null>>) =>
    Object.entries(counts)
      .map(([window, value]) => `${value ?? '–'} in ${window}`)
      .join(', ')
  return (
    <Card title="How often">
      <FactList
        of={[
          ['Events of the visitor', windows(velocity.visitor.events)],
          ['Its addresses', windows(velocity.visitor.ips)],
          ['Its countries', windows(velocity.visitor.countries)],
          ['Its accounts', windows(velocity.visitor.linkedIds)],
          ['Events of the address', windows(velocity.ip.events)],
          ['Visitors of the address', windows(velocity.ip.visitors)],
          ['Visitors of the account', windows(velocity.linkedId.visitors)],
          ['Addresses of the account', windows(velocity.linkedId.ips)],
        ]}
      />
    </Card>
  )
}
