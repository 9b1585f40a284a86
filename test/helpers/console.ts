// A browser as the console's back end sees it: keeps cookies, and sends with every request what a page of the console sends.

export interface Heard {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
  readonly body: any
}

export interface Browser {
  /** By name; a test may set one. */
  readonly cookies: Map<string, string>
  /** Of the session, as `GET /console/api/session` told it last; '' before. */
  csrf: string
  /** `headers` win over those of a page; an empty one is left out. */
  ask(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Heard>
  signIn(email: string, password: string, code?: string): Promise<Heard>
}

export const PASSWORD = 'correct horse battery'
export const OWNER = { email: 'ada@shop.example', name: 'Ada', password: PASSWORD }

export function openBrowser(base: string, address = '198.51.100.7'): Browser {
  const browser: Browser = {
    cookies: new Map(),
    csrf: '',
    async ask(method, path, body, headers = {}) {
      const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const sent = {
        'X-Probe-Address': address,
        'X-Forwarded-For': address,
        Origin: base,
        Cookie: cookie,
        'X-Fingerpost-CSRF': browser.csrf,
        'User-Agent': 'A browser',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      }
      const response = await fetch(base + path, {
        method,
        headers: Object.entries(sent).filter(([, value]) => value !== ''),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      for (const set of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
        if (value === '') browser.cookies.delete(name)
        else browser.cookies.set(name, value)
      }
      const isJson = response.headers.get('content-type') === 'application/json'
      const heard = isJson ? JSON.parse(await response.text()) : await response.text()
      if (typeof heard?.csrf === 'string') browser.csrf = heard.csrf
      return { status: response.status, headers: response.headers, body: heard }
    },
    signIn: (email, password, code) =>
      browser.ask('POST', '/console/api/sign-in', { email, password, ...(code === undefined ? {} : { code }) }),
  }
  return browser
}

/** The token of a link. */
export const tokenOf = (link: string): string => new URL(link).hash.slice('#token='.length)

/** Invites somebody and joins as that; the link's token is used up. */
export async function join(admin: Browser, base: string, email: string, role: string): Promise<Browser> {
  const { status, body } = await admin.ask('POST', '/console/api/members', { email, role })
  if (status !== 201) throw new Error(JSON.stringify(body))
  const browser = openBrowser(base)
  const joined = await browser.ask('POST', '/console/api/join', { token: tokenOf(body.link), password: PASSWORD })
  if (joined.status !== 200) throw new Error(JSON.stringify(joined.body))
  return browser
}
