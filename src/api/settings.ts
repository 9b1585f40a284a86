// Settings of what listens.

export const HTTP_SETTINGS = [
  { name: 'http.host', kind: 'text', standard: '127.0.0.1', alias: 'HOST', sentence: 'Address to listen on.' },
  {
    name: 'http.port',
    kind: 'integer',
    standard: 8080,
    min: 0,
    max: 65_535,
    alias: 'PORT',
    sentence: 'Port to listen on; 0 takes a free one.',
  },
  {
    name: 'http.driver',
    kind: 'text',
    standard: 'auto',
    oneOf: ['auto', 'uws', 'node'],
    sentence: 'uws: the native HTTP server. node: the one of Node.js. auto: uws where its binary loads, else node.',
  },
  {
    name: 'http.publicUrl',
    kind: 'text',
    standard: '',
    alias: 'URL',
    sentence: 'Address under which clients reach it, such as https://fingerpost.example; empty: where it listens.',
  },
  {
    name: 'http.trustedProxies',
    kind: 'list',
    standard: [],
    alias: 'TRUSTED_PROXIES',
    sentence: 'CIDR ranges of proxies whose X-Forwarded-For is believed.',
  },
  {
    name: 'http.allowPlainHttp',
    kind: 'flag',
    standard: false,
    alias: 'ALLOW_PLAIN_HTTP',
    sentence: 'Permits plain HTTP on an address other than loopback.',
  },
  {
    name: 'http.lingerMs',
    kind: 'integer',
    standard: 0,
    min: 0,
    max: 60_000,
    sentence: 'How long a stop still serves connections that are open; behind a proxy, longer than it keeps idle ones.',
  },
  {
    name: 'http.inFlightMax',
    kind: 'integer',
    standard: 20_000,
    min: 1,
    max: 1_000_000,
    sentence: 'Requests served at once; more are refused with 503.',
  },
  {
    name: 'http.perIpConnectionsMax',
    kind: 'integer',
    standard: 0,
    min: 0,
    max: 1_000_000,
    sentence:
      'Connections of one address, or IPv6 /64, with a request under way; more are refused with 503. Trusted proxies are exempt. 0: 1,000, or a quarter of the descriptors the process may have if that is less.',
  },
  {
    name: 'http.adminHost',
    kind: 'text',
    standard: '127.0.0.1',
    alias: 'ADMIN_HOST',
    sentence: 'Address that http.adminPort is on.',
  },
  {
    name: 'http.adminPort',
    kind: 'integer',
    standard: 0,
    min: 0,
    max: 65_535,
    alias: 'ADMIN_PORT',
    sentence:
      'Port of its own for the operator API, the console, /metrics and the details of /readyz, which the main port then does not serve; 0: the main port.',
  },
] as const
