// Looking at processes from outside: whose child is alive, and waiting until something holds.

import { readdirSync, readFileSync } from 'node:fs'

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Parent and state of a process; null when there is none. */
function statOf(pid: string | number): { readonly parent: number; readonly state: string } | null {
  try {
    // The name in parentheses may hold anything.
    const [state = '', parent = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return { parent: Number(parent), state }
  } catch {
    return null
  }
}

/** R, S, D, T (stopped), Z; null when there is no such process. */
export const stateOf = (pid: number): string | null => statOf(pid)?.state ?? null

export function isAlive(pid: number): boolean {
  const stat = statOf(pid)
  return stat !== null && stat.state !== 'Z'
}

/** Living processes started by `pid`. */
export function childrenOf(pid: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((child) => statOf(child)?.parent === pid && isAlive(child))
}

/** Resolves with the milliseconds it took, or rejects with `what` when `holds` stays false for `msMax`. */
export async function until(what: string, msMax: number, holds: () => boolean | Promise<boolean>): Promise<number> {
  const from = performance.now()
  while (!(await holds())) {
    if (performance.now() - from > msMax) throw new Error(`${what}: not within ${msMax} ms`)
    await pause(20)
  }
  return performance.now() - from
}
