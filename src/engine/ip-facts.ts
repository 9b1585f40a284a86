// What an event says of its address, out of what the tables know of it and what a test key made up.

import type { IpFacts } from '../domain/event.ts'
import type { AddressFacts } from '../ipintel/addresses.ts'

/** A country that a test key names wins; of another one the tables' city and coordinates would only contradict it. */
export function ipFacts(ip: string, facts: AddressFacts, mockCountry: string | undefined): IpFacts {
  const geo = mockCountry === undefined || facts.geo?.country === mockCountry ? facts.geo : null
  return {
    address: ip,
    city: geo?.city ?? null,
    region: geo?.region ?? null,
    country: mockCountry ?? geo?.country ?? null,
    lat: geo?.lat ?? null,
    lng: geo?.lng ?? null,
    timezone: geo?.timezone ?? null,
    asn: facts.network?.asn ?? null,
    asnName: facts.network?.name ?? null,
    datacenter: facts.hosting !== null,
    blocklisted: facts.blocklists.length > 0,
    blocklists: facts.blocklists,
  }
}
