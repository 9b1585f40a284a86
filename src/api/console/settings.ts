// Settings of the console.

export const CONSOLE_SETTINGS = [
  {
    name: 'console.url',
    kind: 'text',
    standard: '',
    sentence:
      'Address under which people reach the console, such as https://console.example; empty: http.adminPort where one is set, else http.publicUrl or where it listens.',
  },
  {
    name: 'console.setupFile',
    kind: 'text',
    standard: '',
    sentence:
      'JSON file {"email", "name", "password"} of the first admin, for a set-up without a person; read by a start that finds nobody.',
  },
  {
    name: 'console.oidcIssuer',
    kind: 'text',
    standard: '',
    sentence:
      'Issuer of an OpenID provider with which people may sign in, such as https://login.example; empty: with passwords only.',
  },
  {
    name: 'console.oidcClientId',
    kind: 'text',
    standard: '',
    sentence: 'Client id that the provider gave the console.',
  },
  {
    name: 'console.oidcClientSecret',
    kind: 'text',
    standard: '',
    sentence: 'Secret that it gave with it; empty for a public client.',
  },
  {
    name: 'console.oidcClientSecretFile',
    kind: 'text',
    standard: '',
    sentence: 'File whose first line is that secret, instead of console.oidcClientSecret.',
  },
  {
    name: 'console.oidcLabel',
    kind: 'text',
    standard: 'single sign-on',
    sentence: 'What the button says: Continue with …',
  },
  {
    name: 'console.oidcDomains',
    kind: 'list',
    standard: [],
    sentence: 'Domains of e-mails that come in without having been added, such as shop.example; empty: nobody does.',
  },
  {
    name: 'console.oidcRole',
    kind: 'text',
    standard: 'viewer',
    oneOf: ['viewer', 'analyst', 'editor'],
    sentence: 'Role of whoever comes in by console.oidcDomains.',
  },
] as const

type ProviderPlaces = Readonly<
  Record<
    | 'console.oidcIssuer'
    | 'console.oidcClientId'
    | 'console.oidcClientSecret'
    | 'console.oidcClientSecretFile'
    | 'console.oidcLabel',
    string
  >
> & { readonly 'console.oidcDomains': readonly string[] }

const LABEL_CHARS_MAX = 60
const LOOPBACK = ['127.0.0.1', '[::1]', 'localhost']

/** Why these settings of a provider cannot be; null: they can. */
export function providerProblem(places: ProviderPlaces): string | null {
  const { 'console.oidcIssuer': issuer, 'console.oidcClientId': id, 'console.oidcLabel': label } = places
  if ((issuer === '') !== (id === ''))
    return 'console.oidcIssuer and console.oidcClientId are set together or not at all'
  if (issuer === '') return null
  const url = URL.canParse(issuer) ? new URL(issuer) : null
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.includes(url.hostname))
  if (url === null || !isSafe || /[?#@]/.test(issuer)) {
    return 'console.oidcIssuer takes an address such as https://login.example; http only of this machine'
  }
  if (places['console.oidcClientSecret'] !== '' && places['console.oidcClientSecretFile'] !== '') {
    return 'console.oidcClientSecret and console.oidcClientSecretFile are not set both'
  }
  if (label.length > LABEL_CHARS_MAX) return `console.oidcLabel takes at most ${LABEL_CHARS_MAX} characters`
  const wrong = places['console.oidcDomains'].find((domain) => !/^([a-z0-9-]{1,63}\.)+[a-z0-9-]{2,63}$/.test(domain))
  return wrong === undefined ? null : `console.oidcDomains: ${wrong} is no domain such as shop.example`
}
