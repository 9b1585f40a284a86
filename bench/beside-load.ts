// What work beside them costs those who identify: phases of one steady load, in turns alone and with the work, medians of p50 and p99.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from '../test/helpers/server.ts'
import { childrenOf, cpuSeconds } from './measure.ts'
import { type Load, openOfferer } from './offer.ts'

export interface BesideOptions {
  readonly rate: number
  readonly seconds: number
  readonly rounds: number
  readonly devices: number
}

interface Phase extends Load {
  /** Of server and engine, for everything they did. */
  readonly cores: number
}

const median = (figures: readonly number[]): number =>
  figures.toSorted((a, b) => a - b)[figures.length >> 1] ?? Number.NaN
const cpuOf = ({ pid }: Server) => [pid, ...childrenOf(pid)].reduce((sum, one) => sum + (cpuSeconds(one) ?? 0), 0)

/** `work` begins with a phase and ends soon after `isOver` says so. */
export async function besideLoad(
  server: Server,
  { rate, seconds, rounds, devices }: BesideOptions,
  work: (isOver: () => boolean) => Promise<void>,
): Promise<void> {
  const offerer = await openOfferer({ url: server.url, publicKey: server.keys.public }, devices)
  async function phase(): Promise<Phase> {
    const cpuBefore = cpuOf(server)
    const load = await offerer.offer({ offered: rate, seconds })
    return { ...load, cores: (cpuOf(server) - cpuBefore) / seconds }
  }
  await phase()
  const alone: Phase[] = []
  const beside: Phase[] = []
  for (let n = 1; n <= rounds; n++) {
    alone.push(await phase())
    let isOver = false
    const over = () => {
      isOver = true
    }
    const [load] = await Promise.all([phase().finally(over), work(() => isOver)])
    beside.push(load)
    await sleep(500)
    const said = (one?: Phase) =>
      `${one?.answered}/s, p50 ${one?.p50Ms}, p99 ${one?.p99Ms} ms, ${one?.cores.toFixed(2)} cores`
    console.log(`round ${n}: alone ${said(alone.at(-1))}; beside ${said(beside.at(-1))}`)
  }
  offerer.close()
  const of = (phases: readonly Phase[], figure: keyof Phase) => median(phases.map((one) => one[figure]))
  const figures = (['answered', 'p50Ms', 'p99Ms', 'cores'] as const).map((figure) => {
    const [without, with_] = [of(alone, figure), of(beside, figure)]
    return `${figure} ${without.toFixed(2)}, with ${with_.toFixed(2)}, ratio ${(with_ / without).toFixed(2)}`
  })
  const refused = [...alone, ...beside].reduce((sum, one) => sum + one.refused, 0)
  console.log(`identify at ${rate}/s: ${figures.join('; ')}; ${refused} refused`)
}
