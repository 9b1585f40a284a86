// Starts a compiled script as a child process and collects the lines it prints.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface Child {
  readonly process: ChildProcess
  readonly lines: readonly string[]
  /** Resolves with the first line for which `accept` holds; rejects when the child ends before. */
  line(accept: (line: string) => boolean): Promise<string>
  /** Sends SIGKILL and waits for the end and for the last line. */
  kill(): Promise<void>
}

/** Runs a program to its end, with nothing of this environment but where programs are. */
export async function runProgram(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly said: string }> {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(program, args, { env: { PATH, HOME, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      said += chunk
    })
  }
  const [code] = await once(child, 'close')
  return { code, said }
}

/** `shell` runs first, in the same process, such as a `ulimit`. */
export function startChild(script: string, args: readonly string[], shell = ''): Child {
  const child = spawn('/bin/sh', ['-c', `${shell} exec "$0" "$@"`, process.execPath, script, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout })
  const closed = once(reader, 'close')
  const exited = once(child, 'exit')
  reader.on('line', (line) => lines.push(line))
  return {
    process: child,
    lines,
    line: (accept) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = lines.find(accept)
          if (found !== undefined) resolve(found)
          return found !== undefined
        }
        if (look()) return
        reader.on('line', look)
        reader.on(
          'close',
          () => look() || reject(new Error(`the child ended; it said: ${lines.slice(-5).join(' | ')}`)),
        )
      }),
    async kill() {
      child.kill('SIGKILL')
      await Promise.all([exited, closed])
    },
  }
}
