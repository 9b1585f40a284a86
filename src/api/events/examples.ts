// One made-up visit, as every endpoint and webhook that tells of it shows it.

const head = {
  requestId: 'req_01KAJ6Q3ZV8M4T9XW2C5E7G1HN',
  visitorId: 'pv_7Hq2LmZx90TbVcRk4WsE',
}
const seen = { firstSeenAt: '2026-09-02T07:11:40.010Z', lastSeenAt: '2026-11-20T18:04:05.123Z' }
const timestamp = '2026-11-20T18:04:05.123Z'
const rule = { id: 'rul_3fJ8sKd02LqPzX7mNbVt', name: 'Anonymised logins', priority: 10 }
const storageToken = `st_${'AbCdEfGh'.repeat(8)}`

export const EVENT_EXAMPLE = {
  ...head,
  confidence: 0.9821,
  visitorFound: true,
  possibleVisitorId: null,
  possibleConfidence: null,
  ...seen,
  timestamp,
  device: {
    platform: 'Windows',
    os: 'Windows',
    osVersion: '11',
    browser: 'Chrome 147',
    gpu: 'NVIDIA GeForce RTX 3060',
    type: 'desktop',
    screen: { w: 2560, h: 1440 },
    model: null,
    appVersion: null,
    language: 'en-GB',
    timezone: 'Europe/London',
  },
  signals: {
    bot: { detected: false },
    vpn: { detected: true, provider: 'Example VPN' },
    incognito: false,
    tampered: false,
    emulator: false,
    proxy: false,
    tor: false,
    rootedDevice: false,
    clonedApp: false,
  },
  signalDetails: {
    vpn: { state: 'detected', confidence: 0.94, methods: ['ip_range'], source: 'server', dataAgeSeconds: 86_400 },
  },
  scores: { abuse: 0.12, ato: 0.41, bot: 0.02, suspect: 37.5 },
  scoreReasons: [{ score: 'ato', reason: 'vpn', weight: 0.3 }],
  ip: {
    address: '203.0.113.*',
    city: 'London',
    region: 'England',
    country: 'GB',
    lat: 51.5,
    lng: -0.12,
    timezone: 'Europe/London',
    asn: 64_500,
    asnName: 'Example Networks',
    datacenter: true,
    blocklisted: false,
    blocklists: [],
  },
  verdict: 'challenge',
  challengeType: 'otp',
  matchedRule: rule,
  matchedRules: [{ ...rule, verdict: 'challenge', deciding: true }],
  monitorMatches: [],
  rulesRevision: 42,
  weightsVersion: 4,
  request: { keyKind: 'public' },
  linkedId: 'user_42',
  email: 'a***@b.example',
  tag: { action: 'login' },
  url: 'https://shop.example/login',
  identity: { method: 'token', anonymitySet: 1, candidates: 1 },
  velocity: {
    visitor: {
      events: { '5m': 1, '1h': 2, '24h': 5 },
      ips: { '24h': 2 },
      countries: { '24h': 1 },
      linkedIds: { '24h': 1 },
    },
    ip: { events: { '5m': 1, '1h': 2, '24h': 4 }, visitors: { '24h': 1 } },
    linkedId: { visitors: { '24h': 1 }, ips: { '24h': 2 } },
  },
  label: null,
}

export const IDENTIFIED_EXAMPLE = {
  ...head,
  visitorFound: true,
  confidence: 0.9821,
  ...seen,
  timestamp,
  storageToken,
}

export const IDENTIFY_BODY_EXAMPLE = {
  nonce: 'b3f1c07a52d94e6f',
  sdk: { name: 'js', version: '1.0.0' },
  storageToken: null,
  linkedId: 'user_42',
  tag: { action: 'login' },
  url: 'https://shop.example/login',
  components: {
    userAgent: { value: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/147.0.0.0', ms: 0 },
    timezone: { value: 'Europe/London', ms: 0.1 },
    screenResolution: { value: [2560, 1440], ms: 0.1 },
  },
  automation: { webdriver: false },
}

export const PENDING_EXAMPLE = { requestId: head.requestId, status: 'pending' }

export const SUMMARY_EXAMPLE = { ...head, confidence: 0.9821, verdict: 'challenge', timestamp }

export const VISITOR_EVENT_EXAMPLE = {
  requestId: head.requestId,
  timestamp,
  verdict: 'challenge',
  signals: { bot: false, vpn: true },
}

export const RECOGNITION_EXAMPLE = {
  ...head,
  visitorFound: true,
  method: 'token',
  confidence: 0.9821,
  anonymitySet: 1,
  compared: 1,
  candidates: [{ visitorId: head.visitorId, score: 0.9821 }],
  comparedWith: head.visitorId,
  agreement: {
    gpu: 'agrees',
    model: 'unknown',
    screen: 'agrees',
    devicePixelRatio: 'agrees',
    cores: 'agrees',
    memory: 'agrees',
    canvas: 'agrees',
    audio: 'agrees',
    fonts: 'differs',
    languages: 'agrees',
    timezone: 'agrees',
    platformVersion: 'agrees',
    fontPreferences: 'agrees',
    preferences: 'agrees',
    display: 'agrees',
    screenFrame: 'agrees',
    voices: 'agrees',
    webGl: 'differs',
    equipment: 'agrees',
    audioLatency: 'unknown',
    build: 'agrees',
  },
  browserVersion: 'newer',
  network: 'address',
  tokenGeneration: { presented: 3, issued: 3 },
  evidence: [],
}
