// What a process would tell its operator: no data about addresses, a proxy in front that is not trusted. Nothing of it stops anything.

import type { Advice } from './api/health.ts'
import { PROXY_SUSPICIONS, type ProxySuspicion } from './ingress/proxy-watch.ts'
import type { SourceName } from './ipintel/sources.ts'
import { FETCH_FREE_DATA, inWords, undeterminedWithout } from './ipintel/undetermined.ts'

export const proxyAdvice = (suspicion: ProxySuspicion): Advice => ({
  code: 'untrusted_proxy',
  ...PROXY_SUSPICIONS[suspicion],
})

/** `held`: what there is of each source; null where this process has no use for data about addresses. */
export function ipAdvice(held: Readonly<Record<SourceName, { readonly entries: number } | null>> | null): Advice[] {
  if (held === null) return []
  const missing = undeterminedWithout((source) => (held[source]?.entries ?? 0) > 0)
  if (missing.length === 0) return []
  const says = `undetermined for want of data about addresses: ${inWords(missing)}`
  return [{ code: 'ip_data_missing', says, mend: `${FETCH_FREE_DATA} fetches free data, after showing its licences` }]
}
