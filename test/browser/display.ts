// A screen that nobody sees: what browsers with windows need on a machine without one.

import { spawn } from 'node:child_process'
import { once } from 'node:events'

const executable = process.env.XVFB ?? 'Xvfb'
const startMsMax = 240_000

export type Display = {
  /** For the variable DISPLAY. */
  name: string
  close(): Promise<void>
}

/**
 * The X server chooses a free number itself and writes it to the descriptor we name. Without `-noreset` it would start over
 * whenever its last client leaves and drop those who connect meanwhile: Firefox, whose first look at the screen is a process
 * of its own, then finds no display.
 */
export async function openDisplay(size = '1600x900x24'): Promise<Display> {
  const args = ['-displayfd', '3', '-screen', '0', size, '-nolisten', 'tcp', '-noreset']
  const child = spawn(executable, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  const close = async () => {
    child.kill('SIGTERM')
    await exited
  }
  const number = await new Promise<string>((resolve, reject) => {
    let said = ''
    const timer = setTimeout(() => reject(new Error('Xvfb did not start')), startMsMax)
    const fail = () => {
      clearTimeout(timer)
      reject(new Error(`${executable} ended; Debian has it in the package xvfb`))
    }
    child.once('error', fail)
    child.once('exit', fail)
    child.stdio[3]?.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (!said.endsWith('\n')) return
      clearTimeout(timer)
      child.off('exit', fail)
      resolve(said.trim())
    })
  }).catch(async (error: unknown) => {
    child.kill('SIGKILL')
    throw error
  })
  return { name: `:${number}`, close }
}
