// The load generator as a process of its own: enrols, says so, then offers what it is told to.

import { setPriority } from 'node:os'
import { type Addressee, enrol, type Offering, offer } from './offer.ts'

const [to = '', devices = '', niceness = '0'] = process.argv.slice(2)
setPriority(Number(niceness))
const addressee = JSON.parse(to) as Addressee
const visitors = await enrol(addressee, Number(devices))
process.on('message', async ({ offered, seconds }: Offering) => {
  process.send?.(await offer(addressee, visitors, offered, seconds))
})
process.send?.('enrolled')
