// What the first start prints, once: the keys, a call that works as it stands, and where to look.

export interface Welcome {
  readonly url: string
  readonly keys: readonly { readonly kind: 'public' | 'secret'; readonly env: 'live' | 'test'; readonly text: string }[]
}

export function welcomeText({ url, keys }: Welcome): string {
  const keyOf = (kind: string, env: string) => keys.find((k) => k.kind === kind && k.env === env)?.text
  const lines = [`Fingerpost listens on ${url}`]
  if (keys.length > 0) {
    lines.push('', 'Keys of the workspace "default" (shown this once; only their digests are kept):', '')
    for (const { kind, env, text } of keys) lines.push(`  ${`${kind} ${env}`.padEnd(12)} ${text}`)
  }
  const secret = keyOf('secret', 'test')
  if (secret !== undefined) {
    lines.push(
      '',
      'A first identification:',
      '',
      `  curl -s ${url}/v1/identify -H 'Authorization: Bearer ${secret}' -H 'Content-Type: application/json' \\`,
      `    -d '{"userAgent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/147.0.0.0 Safari/537.36","linkedId":"user_42"}'`,
    )
  }
  const browser = keyOf('public', 'test')
  if (browser !== undefined) lines.push('', `A first browser: open ${url}/demo/?key=${browser}`)
  return lines.join('\n')
}
