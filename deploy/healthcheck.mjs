// Asks the server in this container whether it is well: `node healthcheck.mjs /readyz` ends with 0 on a 200, with 1 otherwise.
// The slim images have neither curl nor wget.

import { request as plain } from 'node:http'
import { request as secure } from 'node:https'

const answerMsMax = 3_000

const { env, argv } = process
// As for the server, the long name wins: the image sets the short one.
const port = env.FINGERPOST_HTTP_PORT || env.FINGERPOST_PORT || '8080'
// The certificate is for the public name; on loopback only the answer counts.
const options = {
  host: '127.0.0.1',
  port,
  path: argv[2] ?? '/healthz',
  timeout: answerMsMax,
  rejectUnauthorized: false,
}

const end = (code) => process.exit(code)
const ask = env.FINGERPOST_TLS_CERT_FILE ? secure : plain
const question = ask(options, (answer) => end(answer.statusCode === 200 ? 0 : 1))
question.on('timeout', () => end(1))
question.on('error', () => end(1))
question.end()
