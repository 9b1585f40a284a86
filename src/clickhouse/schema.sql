-- Every table, as numbered migrations. A released one is never edited: append the next number. Each statement may run
-- twice, because a crash can fall between a statement and the record of its version. {retentionDays} is filled in.

-- migration 1

CREATE TABLE IF NOT EXISTS schema_versions
(
  version        UInt32,
  retention_days UInt16,
  applied_at     DateTime64(3, 'UTC')
)
ENGINE = MergeTree ORDER BY (version, applied_at)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- Scores are fixed point (0..10000 for 0..1; suspect 0..10000 for 0..100) so that a comparison means the same here and in
-- a live rule. ts is LZ4 because every query reads it; it is the millisecond inside request_id. The hash columns hold
-- whatever a list can contain, and 0 stands for an empty value. log_partition and log_seq name
-- the identification a row was made of: unique, and what a sink that lost its marks starts again from.
CREATE TABLE IF NOT EXISTS events
(
  workspace_id     LowCardinality(String),
  env              Enum8('live' = 1, 'test' = 2),
  ts               DateTime64(3, 'UTC') CODEC(Delta(8), LZ4),
  request_id       String CODEC(ZSTD(1)),
  visitor_id       String CODEC(ZSTD(1)),
  visitor_found    Bool,
  first_seen_at    DateTime64(3, 'UTC') CODEC(ZSTD(1)),
  last_seen_at     DateTime64(3, 'UTC') CODEC(ZSTD(1)),
  confidence       UInt16,
  platform         LowCardinality(String),
  os_version       LowCardinality(String),
  browser          LowCardinality(String),
  browser_version  LowCardinality(String),
  gpu              LowCardinality(String),
  device_type      LowCardinality(String),
  device_model     LowCardinality(String),
  app_version      LowCardinality(String),
  language         LowCardinality(String),
  timezone         LowCardinality(String),
  screen_w         UInt16,
  screen_h         UInt16,
  sig_bot          Bool,
  sig_vpn          Bool,
  sig_incognito    Bool,
  sig_tampered     Bool,
  sig_emulator     Bool,
  sig_proxy        Bool,
  sig_tor          Bool,
  sig_rooted_device Bool,
  sig_cloned_app   Bool,
  vpn_provider     LowCardinality(String),
  score_abuse      UInt16,
  score_ato        UInt16,
  score_bot        UInt16,
  score_suspect    UInt16,
  ip               IPv6 CODEC(ZSTD(1)),
  city             LowCardinality(String),
  region           LowCardinality(String),
  country          LowCardinality(String),
  has_location     Bool,
  lat              Float32 CODEC(ZSTD(1)),
  lng              Float32 CODEC(ZSTD(1)),
  asn              UInt32,
  asn_name         LowCardinality(String),
  datacenter       Bool,
  ip_blocklisted   Bool,
  blocklists       Array(LowCardinality(String)),
  verdict          Enum8('none' = 0, 'allow' = 1, 'challenge' = 2, 'block' = 3),
  challenge_type   LowCardinality(String),
  rule_id          LowCardinality(String),
  rule_name        LowCardinality(String),
  rule_priority    Int32,
  matched_rules    Array(LowCardinality(String)),
  rules_revision   UInt64 CODEC(Delta(8), LZ4),
  linked_id        String CODEC(ZSTD(1)),
  email            String CODEC(ZSTD(1)),
  label            Enum8('none' = 0, 'fraud' = 1, 'legitimate' = 2),
  tag              String CODEC(ZSTD(1)),
  url              String CODEC(ZSTD(1)),
  url_host         LowCardinality(String),
  url_path         String CODEC(ZSTD(1)),
  total_visits     UInt32,
  linked_accounts  UInt32,
  identity_method  LowCardinality(String),
  anonymity_set    UInt32,
  velocity         Array(UInt32),
  evaluation_error LowCardinality(String),
  detail           String CODEC(ZSTD(3)),
  log_partition    UInt16,
  log_seq          UInt64 CODEC(Delta(8), LZ4),
  visitor_hash     UInt64 MATERIALIZED cityHash64(visitor_id) CODEC(NONE),
  ip_hash          UInt64 MATERIALIZED cityHash64(IPv6NumToString(ip)) CODEC(NONE),
  email_hash       UInt64 MATERIALIZED if(email = '', 0, cityHash64(email)) CODEC(LZ4),
  linked_hash      UInt64 MATERIALIZED if(linked_id = '', 0, cityHash64(linked_id)) CODEC(LZ4),
  inserted_at      DateTime('UTC') DEFAULT now() CODEC(Delta(4), LZ4),
  INDEX by_visitor visitor_hash TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_ip      ip_hash      TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_email   email_hash   TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_linked  linked_hash  TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(ts)
ORDER BY (workspace_id, env, ts, request_id)
TTL toDateTime(ts) + INTERVAL {retentionDays} DAY DELETE
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000,
  enable_block_number_column = 1, enable_block_offset_column = 1,
  min_age_to_force_merge_seconds = 604800, min_age_to_force_merge_on_partition_only = 1,
  min_bytes_for_wide_part = 134217728,
  fsync_after_insert = 1, fsync_part_directory = 1;

-- Rows the engine refused, as they were, until somebody looks at them.
CREATE TABLE IF NOT EXISTS quarantine
(
  at            DateTime64(3, 'UTC'),
  source        LowCardinality(String),
  log_partition UInt16,
  token         String,
  reason        String,
  raw           String CODEC(ZSTD(3))
)
ENGINE = MergeTree
PARTITION BY toMonday(at)
ORDER BY (source, at)
TTL toDateTime(at) + INTERVAL {retentionDays} DAY DELETE
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000,
  enable_block_number_column = 1, enable_block_offset_column = 1,
  fsync_after_insert = 1, fsync_part_directory = 1;

-- migration 2

-- What is left of erased visitors. Kept for good: old tokens and old backups must not bring a visitor back.
CREATE TABLE IF NOT EXISTS erasures
(
  workspace_id  LowCardinality(String),
  env           Enum8('live' = 1, 'test' = 2),
  erased_id     String,
  erasure_id    String,
  at            DateTime64(3, 'UTC'),
  log_partition UInt16
)
ENGINE = MergeTree ORDER BY (log_partition, erased_id)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1;

-- migration 3

-- Which monitored rules an event matched. They are inside `detail` as well, but a report should not parse that of every event.
ALTER TABLE events ADD COLUMN IF NOT EXISTS monitor_rules Array(LowCardinality(String)) MATERIALIZED
  if(position(detail, '"mon":') > 0,
     arrayMap(rule -> JSONExtractString(rule, 'id'), JSONExtractArrayRaw(detail, 'mon')), []);

-- migration 4

-- What conditions name has a column of its own: a text inside detail costs a hundred times as much to ask for.
ALTER TABLE events
  ADD COLUMN IF NOT EXISTS bot_type LowCardinality(String) DEFAULT JSONExtractString(detail, 'bot') AFTER vpn_provider,
  ADD COLUMN IF NOT EXISTS ip_timezone LowCardinality(String) DEFAULT JSONExtractString(detail, 'zone') AFTER lng,
  ADD COLUMN IF NOT EXISTS candidates UInt32 DEFAULT toUInt32(JSONExtractUInt(detail, 'cand')) AFTER anonymity_set;

-- Lists as backtests ask for them, for an hour: kind says what h is (see reads/list-snapshots.ts). Of an entry only the hash is
-- ever stored.
CREATE TABLE IF NOT EXISTS list_snapshots
(
  snapshot_id String,
  kind        UInt8,
  entry       String EPHEMERAL,
  h           UInt64 DEFAULT multiIf(
                kind = 0, cityHash64(entry),
                kind = 1 OR kind > 64, cityHash64(IPv6NumToString(toIPv6OrDefault(entry))),
                toUInt64OrZero(entry)) CODEC(NONE),
  loaded_at   DateTime('UTC') DEFAULT now()
)
ENGINE = MergeTree
ORDER BY (snapshot_id, kind, h)
TTL loaded_at + INTERVAL 1 HOUR DELETE
SETTINGS non_replicated_deduplication_window = 1000, merge_with_ttl_timeout = 600;

-- migration 5

-- Which kind of key an event came with; empty where it was not kept. Inside `detail` it is one number under a name nothing else has.
ALTER TABLE events ADD COLUMN IF NOT EXISTS key_kind LowCardinality(String) MATERIALIZED
  transform(simpleJSONExtractUInt(detail, 'k'), [1, 2], ['public', 'secret'], '');

-- migration 6

-- A merge is flushed as inserts are: the embedded engine removes what it merged at once, and after a power cut the rows, of whatever
-- age, would be in neither.
ALTER TABLE schema_versions MODIFY SETTING min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1;

ALTER TABLE events MODIFY SETTING min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1;

ALTER TABLE quarantine MODIFY SETTING min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1;

ALTER TABLE erasures MODIFY SETTING min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1;

-- migration 7

-- The known visitor that a new one may be, which an event has inside `detail`: its id, how likely that is in ten-thousandths, its hash.
ALTER TABLE events
  ADD COLUMN IF NOT EXISTS possible_visitor_id String MATERIALIZED
    if(position(detail, '"may":') > 0, JSONExtractString(detail, 'may', 1), '') CODEC(ZSTD(1)),
  ADD COLUMN IF NOT EXISTS possible_confidence UInt16 MATERIALIZED
    if(position(detail, '"may":') > 0, JSONExtractUInt(detail, 'may', 2), 0),
  ADD COLUMN IF NOT EXISTS possible_hash UInt64 MATERIALIZED
    if(position(detail, '"may":') > 0, cityHash64(JSONExtractString(detail, 'may', 1)), 0) CODEC(LZ4),
  ADD INDEX IF NOT EXISTS by_possible possible_hash TYPE bloom_filter(0.01) GRANULARITY 1;

-- migration 8

-- A part is merged with more others at once: each row is written anew half as often, and a few more parts wait meanwhile.
ALTER TABLE events MODIFY SETTING merge_selector_base = 10;
