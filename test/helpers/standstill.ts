// Brings a process to a standstill, and says so only once it stands.
import { readdirSync, readFileSync } from 'node:fs'

/** Whether the thread at `path` of /proc is stopped, or gone. */
function stands(path: string): boolean {
  try {
    return /\) [TZX] /.test(readFileSync(path, 'latin1'))
  } catch {
    return true
  }
}

/**
 * Stops `pid` until SIGCONT: connections stay open and nothing answers. A signal takes effect when a processor gets to it, and
 * until then the process goes on answering: on Linux this returns when the last of its threads has stopped.
 */
export function standStill(pid: number): void {
  process.kill(pid, 'SIGSTOP')
  if (process.platform !== 'linux') return
  const tasks = `/proc/${pid}/task`
  while (!readdirSync(tasks).every((id) => stands(`${tasks}/${id}/stat`)));
}
