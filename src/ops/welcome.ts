// What a start prints: the first one the keys, what to paste so that every example works, and a first call; each one where to look.

export interface Welcome {
  readonly listensOn: string
  /** Under which clients reach it. */
  readonly url: string
  readonly keys: readonly { readonly kind: 'public' | 'secret'; readonly env: 'live' | 'test'; readonly text: string }[]
  /** null: the console is set up, or is not here. */
  readonly setupLink: string | null
  /** Opens the demo page once. */
  readonly demoLink: string | null
  readonly advice: readonly { readonly says: string; readonly mend: string }[]
}

/** A program that drives a browser in a private window, with as much of it as the signals need. */
const VISIT = `{
      "userAgent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36",
      "ip": "203.0.113.7", "linkedId": "user_42", "tag": { "action": "login" },
      "components": {
        "platform": { "value": "Win32" },
        "languages": { "value": [["en-GB"]] },
        "timezone": { "value": "Europe/London" },
        "screenResolution": { "value": [2560, 1440] },
        "hardwareConcurrency": { "value": 8 },
        "incognito": { "value": { "isPrivate": true, "browserName": "Chrome" } },
        "webGlBasics": { "value": { "rendererUnmasked": "ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 Direct3D11)" } }
      },
      "automation": { "webdriver": true }
    }`

const capitalised = (sentence: string): string => `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`

export function welcomeText({ listensOn, url, keys, setupLink, demoLink, advice }: Welcome): string {
  const keyOf = (kind: string, env: string) => keys.find((k) => k.kind === kind && k.env === env)?.text
  const lines = [`Fingerpost listens on ${listensOn}`]
  if (keys.length > 0) {
    lines.push('', 'Keys of the workspace "default" (shown this once; only their digests are kept):', '')
    for (const { kind, env, text } of keys) lines.push(`  ${`${kind} ${env}`.padEnd(12)} ${text}`)
  }
  if (setupLink !== null) lines.push('', `The console, to be set up by whoever opens this first: ${setupLink}`)
  for (const { says, mend } of advice) lines.push('', `${capitalised(says)}.`, `  ${mend}`)
  const secret = keyOf('secret', 'test')
  if (secret !== undefined) {
    lines.push(
      '',
      'In another terminal, for every example of README and /docs, and a first identification (the answer says what was found):',
      '',
      `  export FINGERPOST_URL=${url} FINGERPOST_TEST_SECRET_KEY=${secret}`,
      '',
      `  curl -s "$FINGERPOST_URL/v1/identify" -H "Authorization: Bearer $FINGERPOST_TEST_SECRET_KEY" -H 'Content-Type: application/json' \\`,
      `    -d '${VISIT}'`,
    )
  }
  if (demoLink !== null) {
    lines.push(
      '',
      'Your own browser, and what your back end would hear of it (opens once; `fingerpost demo` prints another link):',
      '',
      `  ${demoLink}`,
    )
  }
  return lines.join('\n')
}
