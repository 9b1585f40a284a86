// temporary
import { runWorld } from './world.ts'

Error.stackTraceLimit = 0
const from = Number(process.argv[2] ?? 1)
const count = Number(process.argv[3] ?? 1)
const verbose = process.argv[4] === '-v'
const t0 = process.cpuUsage()
const w0 = Date.now()
let steps = 0,
  events = 0,
  failed = 0
const byCheck = new Map<string, number[]>()
for (let seed = from; seed < from + count; seed++) {
  const r = await runWorld(seed, {}, verbose ? 1_000_000 : 200)
  steps += r.steps
  events += r.events
  if (verbose) console.log(r.trace.join('\n'))
  if (verbose) console.log(r.failures)
  if (r.failures.length > 0) {
    failed++
    const c = r.failures[0]?.check ?? ''
    byCheck.set(c, [...(byCheck.get(c) ?? []), seed])
    if (failed <= 3) console.log(seed, r.virtualMs, r.failures.slice(0, 3))
  }
}
const cpu = process.cpuUsage(t0)
console.log({
  count,
  failed,
  steps: steps / count,
  events: events / count,
  cpuMs: (cpu.user + cpu.system) / 1000 / count,
  wallMs: (Date.now() - w0) / count,
})
for (const [c, s] of byCheck) console.log(s.length, c, s.slice(0, 12).join(' '))
