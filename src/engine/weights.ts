// The weights of everything that raises a signal or a score, in one versioned table. A weight is the chance that the
// check alone is right; independent checks combine by noisy-OR, so that adding one never lowers a result.

/** Changes with every change of a weight or threshold below. */
export const WEIGHTS_VERSION = 2

/** From here on a signal is detected. */
export const DETECTED_MIN = { bot: 0.8, tampered: 0.6, emulator: 0.8, proxy: 0.6 } as const

/** Checks for automation. Not being proof alone, a broken permission answer needs a second witness. */
export const BOT = {
  webdriver: 0.97,
  headless_ua: 0.97,
  detector: 0.95,
  isbot_ua: 0.95,
  permissions_inconsistent: 0.7,
  headers_incomplete: 0.5,
  tampered_environment: 0.45,
  software_gpu: 0.25,
} as const

/** Checks for an environment that does not tell the truth about itself. */
export const TAMPERED = {
  worker_platform: 0.8,
  worker_user_agent: 0.8,
  engine_mismatch: 0.8,
  ua_platform: 0.7,
  ua_client_hints: 0.7,
  hints_on_other_engine: 0.7,
  header_user_agent: 0.7,
  worker_cores: 0.6,
  worker_gpu: 0.6,
  hints_version: 0.6,
  gpu_platform: 0.6,
  native_overridden: 0.6,
  frame_differs: 0.6,
  worker_timezone: 0.5,
  vendor_mismatch: 0.5,
  mobile_without_touch: 0.5,
  token_contradiction: 0.5,
  worker_language: 0.4,
  hints_missing: 0.4,
  worker_memory: 0.4,
  clock_overridden: 0.4,
  token_forged: 0.3,
  /** What privacy tools replace: drawing, sound, fonts. Never enough, however many there are. */
  noise_overridden: 0.1,
} as const

export const EMULATOR = { software_gpu: 0.9, virtual_gpu: 0.95, x86_phone: 0.5 } as const

/** Headers that pass a request on, and a browser in a data centre by what says so. */
export const PROXY = {
  datacenter_range: 0.7,
  datacenter_asn: 0.65,
  bad_asn: 0.65,
  via_header: 0.6,
  forwarded_for: 0.4,
  forwarded_header: 0.3,
  /** Proxies in homes are on no list. */
  clear: 0.7,
} as const

/** An AS number covers customers besides the VPN; a clock of elsewhere in a data centre may be a cloud desktop. */
export const VPN = {
  vpn_range: 0.95,
  relay: 0.95,
  vpn_asn: 0.85,
  timezone_hosting: 0.7,
  clear: 0.8,
  clear_mismatch: 0.3,
} as const

export const TOR = { exit: 0.95, exit_and_browser: 0.99, clear: 0.95 } as const

/** How long data about addresses keeps its full weight. */
export const FRESH_SECONDS = { tor: 86_400, ranges: 30 * 86_400 } as const
/** What is left of it then, and once it is older than `oldFactor` times that. */
export const STALE = { stale: 0.75, old: 0.5, oldFactor: 7 } as const

/** Score reasons: name of a signal, or a fact of the visit. */
export const ABUSE = {
  incognito: 0.15,
  vpn: 0.2,
  proxy: 0.3,
  tor: 0.5,
  tampered: 0.4,
  emulator: 0.5,
  rootedDevice: 0.2,
  clonedApp: 0.4,
  linked_accounts_2: 0.15,
  linked_accounts_3: 0.4,
  linked_accounts_5: 0.7,
  possible_visitor: 0.2,
  listed: 0.9,
} as const

export const ATO = {
  new_device: 0.35,
  tor: 0.4,
  vpn: 0.2,
  proxy: 0.2,
  tampered: 0.3,
  low_confidence: 0.1,
} as const

export const SUSPECT = {
  bot: 0.9,
  tampered: 0.5,
  tor: 0.5,
  emulator: 0.5,
  clonedApp: 0.4,
  proxy: 0.35,
  vpn: 0.25,
  rootedDevice: 0.2,
  incognito: 0.1,
  low_confidence: 0.1,
  listed: 0.95,
} as const

/** Highest suspect score that no bot and no list entry caused. */
export const SUSPECT_CAP = 0.95
/** Confidence of recognition below which it counts as low. */
export const LOW_CONFIDENCE = 0.5
