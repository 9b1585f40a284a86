// The weights of everything that raises a signal or a score, in one versioned table. A weight is the chance that the
// check alone is right; independent checks combine by noisy-OR, so that adding one never lowers a result.

/** Changes with every change of a weight or threshold below. */
export const WEIGHTS_VERSION = 4

/** From here on a signal is detected. */
export const DETECTED_MIN = { bot: 0.8, tampered: 0.6, emulator: 0.8, proxy: 0.6, native: 0.6 } as const

/**
 * Checks for automation. The first six are proof alone. What some people's browsers do as well needs a second witness:
 * any two from `permissions_inconsistent` to `electron` are enough, and each of them in a tampered environment.
 */
export const BOT = {
  /** More events of a visitor in five minutes than a person makes. */
  velocity_visitor_5m: 0.5,
  webdriver: 0.97,
  headless_ua: 0.97,
  detector: 0.95,
  isbot_ua: 0.95,
  webdriver_hidden: 0.85,
  /** A page laid out for a screen larger than its window, without developer tools: a program said how large it is to be. */
  viewport_emulated: 0.85,
  permissions_inconsistent: 0.7,
  /** Developer tools ask the same of a browser as a program that drives it. */
  inspector_attached: 0.64,
  plugins_odd: 0.64,
  engine_odd: 0.64,
  window_without_size: 0.64,
  no_languages: 0.64,
  electron: 0.64,
  /** How Firefox paints its own controls when nobody is to see them. */
  headless_style: 0.6,
  /** Only where nothing can point: no voice, no microphone, camera or loudspeaker; a window as large as a screen without any bar. */
  headless_equipment: 0.6,
  headless_window: 0.6,
  no_pointer: 0.5,
  headless_screen: 0.5,
  headers_incomplete: 0.5,
  tampered_environment: 0.45,
  software_gpu: 0.25,
  datacenter: 0.25,
  /** A machine nobody hears or speaks to, on a screen without any bar: those of programs, and some virtual desktops. */
  bare_desk: 0.25,
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
  os_cpu: 0.6,
  worker_timezone: 0.5,
  vendor_mismatch: 0.5,
  mobile_without_touch: 0.5,
  token_contradiction: 0.5,
  worker_language: 0.4,
  header_language: 0.4,
  hints_missing: 0.4,
  worker_memory: 0.4,
  clock_overridden: 0.4,
  token_forged: 0.3,
  /** What privacy tools replace: drawing, sound, fonts. Never enough, however many there are. */
  noise_overridden: 0.1,
} as const

export const EMULATOR = { software_gpu: 0.9, virtual_gpu: 0.95, x86_phone: 0.5 } as const

/** What an app says of its phone, and what contradicts it. The same id on two kinds of hardware is a clone or a restored backup. */
export const NATIVE = {
  flag: 0.95,
  attestation_below_device: 0.8,
  attested_virtual: 0.9,
  emulated_model: 0.9,
  id_elsewhere: 0.6,
  model_of_other_system: 0.7,
  user_agent_of_other_system: 0.7,
} as const

/** Verdicts of Play Integrity. */
export const ATTESTED = {
  device: ['MEETS_DEVICE_INTEGRITY', 'MEETS_STRONG_INTEGRITY', 'MEETS_VIRTUAL_INTEGRITY'] as readonly string[],
  virtual: 'MEETS_VIRTUAL_INTEGRITY',
} as const

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
const ABUSE = {
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

const ATO = {
  new_device: 0.35,
  tor: 0.4,
  vpn: 0.2,
  proxy: 0.2,
  tampered: 0.3,
  low_confidence: 0.1,
  impossible_travel: 0.5,
  velocity_accounts_24h: 0.6,
  velocity_visitors_24h: 0.4,
} as const

/**
 * From here on a counter is a reason. How many visitors an account may have in a day is an assumption: more than the devices of a
 * household that shares it.
 */
export const VELOCITY_MIN = { visitorEvents5m: 31, visitorAccounts24h: 4, accountVisitors24h: 6 } as const

const SUSPECT = {
  bot: 0.9,
  /** What speaks for a program without being enough, as heavy as it is likely. */
  bot_evidence: 0.5,
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

export const SCORE_REASONS: readonly string[] = Object.entries({
  abuse: ABUSE,
  ato: ATO,
  bot: BOT,
  suspect: SUSPECT,
}).flatMap(([score, reasons]) => Object.keys(reasons).map((reason) => `${score}.${reason}`))

/** What a workspace may weigh in its own way. */
export const SCORE_WEIGHTS = { abuse: ABUSE, ato: ATO, bot: BOT, suspect: SUSPECT } as const

/** Highest suspect score that no bot and no list entry caused. */
export const SUSPECT_CAP = 0.95
/** Confidence of recognition below which it counts as low. */
export const LOW_CONFIDENCE = 0.5
