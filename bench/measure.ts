// What a benchmark reads of processes: CPU, memory, and a line of Prometheus text.

import { readdirSync, readFileSync } from 'node:fs'

const TICKS_PER_SECOND = 100

/** CPU seconds (user and system) of a process so far; the last known value is the caller's to keep once it is gone. */
export function cpuSeconds(pid: number): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  } catch {
    return null
  }
}

/** Of figures in ascending order the one that `share` of them, 0 to 1, are below; undefined where there are none. */
export const atShare = (sorted: readonly number[], share: number): number | undefined =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]

export function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
    )
  } catch {
    return []
  }
}

export function rssMegabytes(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Math.round(Number(line?.[1] ?? 0) / 1024)
}

/** Sum of all samples of a metric whose labels match. */
export function sumOf(text: string, metric: string, labels: RegExp = /.*/): number {
  let sum = 0
  for (const line of text.split('\n')) {
    if (!line.startsWith(metric) || !labels.test(line)) continue
    const next = line[metric.length]
    if (next === '{' || next === ' ') sum += Number(line.slice(line.lastIndexOf(' ') + 1))
  }
  return sum
}
