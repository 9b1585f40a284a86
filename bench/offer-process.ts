// The load generator as a process of its own, below everybody else's priority: enrols, says so, then offers what it is told to.

import { setPriority } from 'node:os'
import { type Addressee, enrol, type Offering, offer } from './offer.ts'

const GIVES_WAY = 10

setPriority(GIVES_WAY)
const [to = '', devices = ''] = process.argv.slice(2)
const addressee = JSON.parse(to) as Addressee
const visitors = await enrol(addressee, Number(devices))
process.on('message', async ({ offered, seconds }: Offering) => {
  process.send?.(await offer(addressee, visitors, offered, seconds))
})
process.send?.('enrolled')
