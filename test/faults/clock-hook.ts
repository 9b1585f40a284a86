// Loaded into a server before its own code: on SIGUSR2 its clock jumps, an hour or a day, forth or back, in turn, as when the
// machine's clock is set. Monotonic time goes on.

const HOUR_MS = 3_600_000
const JUMPS_MS = [HOUR_MS, -HOUR_MS, -HOUR_MS, HOUR_MS, 24 * HOUR_MS, -24 * HOUR_MS]
const now = Date.now
let offsetMs = 0
let jumps = 0

Date.now = () => now() + offsetMs
process.on('SIGUSR2', () => {
  offsetMs += JUMPS_MS[jumps++ % JUMPS_MS.length] as number
})
