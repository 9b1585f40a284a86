// Runs test files side by side and writes one TAP report: `node .scripts/tap.mjs JOBS FILE...`. tap's own runner would load its
// hooks into every test and into every process that a test starts, which doubles what a start of the server costs.
import t from 'tap'

const FILE_SECONDS_MAX = 1_500

const [jobs, ...files] = process.argv.slice(2)
t.setTimeout(0)
t.jobs = Number(jobs)
t.plan(files.length)

const running = []
t.on('spawn', (file) => running.push(file))
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    for (const { proc } of running) proc?.kill(signal)
    process.exit(1)
  })
}

const env = {
  ...process.env,
  ...{ TAP_TIMEOUT: String(FILE_SECONDS_MAX), TAP_FAIL_SKIP: '1', TAP_FAIL_TODO: '1', TAP_FAIL_ONLY: '1' },
}
for (const name of files) {
  // The hooks would come by this variable; execArgv are those of this process.
  const args = ['-u', 'NODE_OPTIONS', process.execPath, ...process.execArgv, name]
  t.spawn('env', args, { name, at: null, stack: '', env, buffered: t.jobs > 1, timeout: FILE_SECONDS_MAX * 1_000 })
}
