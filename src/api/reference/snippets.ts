// How a receiver of webhooks checks a signature, in four languages. Each takes the secret, the two headers and the raw body.

export interface Snippet {
  readonly language: string
  readonly code: string
}

export const VERIFY_SNIPPETS: readonly Snippet[] = [
  {
    language: 'Node',
    code: `import { createHmac, timingSafeEqual } from 'node:crypto'

export function isGenuine(secret, headers, rawBody) {
  if (!secret) throw new Error('the secret of the webhook is not set')
  const timestamp = headers['x-service-timestamp'] ?? ''
  if (!/^\\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - timestamp) > 300) return false
  const expected = 'sha256=' + createHmac('sha256', secret).update(timestamp + '.').update(rawBody).digest('hex')
  const given = headers['x-service-signature'] ?? ''
  return given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected))
}`,
  },
  {
    language: 'Python',
    code: `import hashlib, hmac, time

def is_genuine(secret: str, headers: dict, raw_body: bytes) -> bool:
    if not secret:
        raise ValueError("the secret of the webhook is not set")
    timestamp = headers.get("X-Service-Timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 13) or abs(time.time() - int(timestamp)) > 300:
        return False
    signed = timestamp.encode() + b"." + raw_body
    expected = "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), headers.get("X-Service-Signature", "").encode())`,
  },
  {
    language: 'Go',
    code: `package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

func IsGenuine(secret string, header http.Header, rawBody []byte) bool {
	if secret == "" {
		panic("the secret of the webhook is not set")
	}
	timestamp := header.Get("X-Service-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 300*time.Second {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(rawBody)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(header.Get("X-Service-Signature")))
}`,
  },
  {
    language: 'Shell',
    code: `# SECRET (not empty), TIMESTAMP and SIGNATURE from the registration and the headers; the raw body in the file body.json
age=$(( $(date +%s) - TIMESTAMP ))
expected="sha256=$({ printf '%s.' "$TIMESTAMP"; cat body.json; } | openssl dgst -sha256 -hmac "$SECRET" | sed 's/^.* //')"
[ -n "$SECRET" ] && [ "\${age#-}" -le 300 ] && [ "$expected" = "$SIGNATURE" ]`,
  },
]

export const CLIENT_SNIPPET = `import { openFingerpost } from 'fingerpost/client'

const fingerpost = openFingerpost({ baseUrl: process.env.FINGERPOST_URL, key: process.env.FINGERPOST_SECRET_KEY })

const event = await fingerpost.events.get(requestId)
if (event.verdict === 'block') throw new Error('blocked')

for await (const { requestId, verdict } of fingerpost.events.all({ visitorId: event.visitorId })) {
  console.log(requestId, verdict)
}`
