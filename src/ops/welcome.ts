// What the first start prints, once: the keys, what to paste so that every example works, a first call, and where to look.

export interface Welcome {
  readonly listensOn: string
  /** Under which clients reach it. */
  readonly url: string
  readonly keys: readonly { readonly kind: 'public' | 'secret'; readonly env: 'live' | 'test'; readonly text: string }[]
  /** null: the console is set up, or is not here. */
  readonly setupLink: string | null
}

export function welcomeText({ listensOn, url, keys, setupLink }: Welcome): string {
  const keyOf = (kind: string, env: string) => keys.find((k) => k.kind === kind && k.env === env)?.text
  const lines = [`Fingerpost listens on ${listensOn}`]
  if (keys.length > 0) {
    lines.push('', 'Keys of the workspace "default" (shown this once; only their digests are kept):', '')
    for (const { kind, env, text } of keys) lines.push(`  ${`${kind} ${env}`.padEnd(12)} ${text}`)
  }
  if (setupLink !== null) lines.push('', `The console, to be set up by whoever opens this first: ${setupLink}`)
  const secret = keyOf('secret', 'test')
  if (secret !== undefined) {
    lines.push(
      '',
      'In another terminal, for every example of README and /docs, and a first identification:',
      '',
      `  export FINGERPOST_URL=${url} FINGERPOST_TEST_SECRET_KEY=${secret}`,
      '',
      `  curl -s "$FINGERPOST_URL/v1/identify" -H "Authorization: Bearer $FINGERPOST_TEST_SECRET_KEY" -H 'Content-Type: application/json' \\`,
      `    -d '{"userAgent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/147.0.0.0 Safari/537.36","linkedId":"user_42"}'`,
    )
  }
  const browser = keyOf('public', 'test')
  if (browser !== undefined) lines.push('', `A first browser: open ${url}/demo/?key=${browser}`)
  return lines.join('\n')
}
