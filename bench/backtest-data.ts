// A history for the backtest bench, made by the engine itself: thirty days of events whose values have the spread of real ones.

import type { ClickHouse } from '../src/clickhouse/clickhouse.ts'
import { EVENTS_TABLE } from '../src/events/row.ts'

const ROWS_PER_INSERT = 500_000
const SPAN_MS = 30 * 86_400_000

/** One event in three of a visitor comes from the first tenth of them: few come often, most come a few times. */
const VISITOR = `cityHash64(if(h % 3 = 0, intDiv(h2 % {visitors:UInt64}, 10), h2 % {visitors:UInt64}))`

const pick = (values: readonly string[], by: string): string =>
  `[${values.map((value) => `'${value}'`).join(', ')}][1 + ${by} % ${values.length}]`

const SELECT: Readonly<Record<string, string>> = {
  workspace_id: '{workspace:String}',
  env: `'live'`,
  ts: 'fromUnixTimestamp64Milli(at)',
  request_id: `concat('req_', substring(hex(sipHash128(number)), 1, 26))`,
  visitor_id: `concat('pv_', substring(hex(sipHash128(v)), 1, 20))`,
  visitor_found: 'h % 10 < 7',
  first_seen_at: `fromUnixTimestamp64Milli(at - if(h % 10 < 7, toInt64(h2 % ${SPAN_MS}), 0))`,
  last_seen_at: 'fromUnixTimestamp64Milli(at)',
  confidence: 'toUInt16(5000 + h3 % 5001)',
  platform: pick(['Windows', 'macOS', 'iOS', 'Android', 'Linux'], 'v'),
  browser: pick(['Chrome 147', 'Chrome 146', 'Safari 18', 'Firefox 140', 'Edge 147'], 'v'),
  device_type: pick(['desktop', 'mobile', 'tablet'], 'v'),
  screen_w: 'toUInt16(1920)',
  screen_h: 'toUInt16(1080)',
  sig_bot: 'h % 100 < 3',
  sig_vpn: 'h3 % 100 < 12',
  sig_incognito: 'h2 % 100 < 8',
  sig_proxy: 'h % 1000 < 15',
  score_abuse: 'toUInt16(pow(h3 % 10001, 2) / 10000)',
  score_ato: 'toUInt16(pow(h2 % 10001, 2) / 10000)',
  score_bot: 'toUInt16(pow(h % 10001, 3) / 100000000)',
  score_suspect: 'toUInt16(pow(h3 % 10001, 2) / 10000)',
  ip: `toIPv6(IPv4NumToString(toUInt32(v % 4000000000)))`,
  country: pick(['CZ', 'DE', 'FR', 'JP', 'US', 'BR', 'IN', 'NG', 'VN', 'ID', 'PL', 'GB'], 'v'),
  asn: 'toUInt32(1000 + v % 5000)',
  datacenter: 'h2 % 100 < 4',
  verdict: `multiIf(h3 % 100 < 94, 'allow', h3 % 100 < 98, 'challenge', 'block')`,
  linked_id: `if(h2 % 10 < 4, concat('user_', toString(v % 1000000)), '')`,
  email: `if(h2 % 10 < 3, concat('user', toString(v % 1000000), '@', ${pick(['mail.example', 'post.example', 'corp.example'], 'v')}), '')`,
  label: `multiIf(h3 % 1000 < 2, 'fraud', h3 % 1000 < 20, 'legitimate', 'none')`,
  tag: `'{"action":"login"}'`,
  url: `'https://shop.example/login'`,
  url_host: `'shop.example'`,
  url_path: `'/login'`,
  total_visits: 'toUInt32(1 + h % 40)',
  linked_accounts: 'toUInt32(h2 % 4)',
  identity_method: pick(['token', 'exact', 'linked', 'new'], 'h'),
  anonymity_set: 'toUInt32(1 + v % 20)',
  velocity: '[toUInt32(1 + h % 5), toUInt32(1 + h % 9), toUInt32(1 + h % 30)]',
  detail: `'{"s":{}}'`,
  log_seq: 'number',
}

/** Fills the table with `events` rows of a workspace that end now. */
export async function fillHistory(
  clickhouse: Pick<ClickHouse, 'command'>,
  workspace: string,
  events: number,
  nowMs: number,
  onProgress: (done: number) => void,
): Promise<void> {
  const columns = Object.keys(SELECT).join(', ')
  const cells = Object.values(SELECT).join(', ')
  for (let from = 0; from < events; from += ROWS_PER_INSERT) {
    const rows = Math.min(ROWS_PER_INSERT, events - from)
    await clickhouse.command(
      `INSERT INTO ${EVENTS_TABLE} (${columns})
       SELECT ${cells} FROM (
         SELECT number, cityHash64(number, 1) AS h, cityHash64(number, 2) AS h2, cityHash64(number, 3) AS h3,
           ${VISITOR} AS v, {start:Int64} + intDiv(toInt64(number) * ${SPAN_MS}, {events:Int64}) AS at
         FROM numbers({from:UInt64}, {rows:UInt64}))`,
      { workspace, from, rows, events, visitors: Math.max(10, Math.floor(events / 4)), start: nowMs - SPAN_MS + 1_000 },
    )
    onProgress(from + rows)
  }
}
