// Wraps any port so that a plan decides, call by call, which ones fail before their effect, after it, or are late.
import { type Clock, systemClock } from '../../src/lib/clock.ts'

export type Fault =
  | null
  /** The port is never called and the promise rejects. */
  | { readonly kind: 'before'; readonly error: Error }
  /** The port is never called and nobody is told: for methods that return nothing, such as a publish. */
  | { readonly kind: 'lost' }
  /** The effect happens, the caller learns otherwise. */
  | { readonly kind: 'after'; readonly error: Error }
  /** The call starts `ms` later. Only for methods that return a promise. */
  | { readonly kind: 'delay'; readonly ms: number }

/** `callIndex` counts the calls of this method from 0. */
export type FaultPlan = (method: string, callIndex: number) => Fault

type Method = (...args: unknown[]) => unknown

/** The same port with faults. Methods of the original are called on the original. */
export function faulty<P extends object>(port: P, plan: FaultPlan, clock: Clock = systemClock): P {
  const wrapped: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(port)) {
    wrapped[name] = typeof member === 'function' ? wrap(port, name, member as Method, plan, clock) : member
  }
  return wrapped as P
}

function wrap(port: object, name: string, method: Method, plan: FaultPlan, clock: Clock): Method {
  let calls = 0
  return (...args) => {
    const fault = plan(name, calls)
    calls += 1
    const call = () => method.apply(port, args)
    switch (fault?.kind) {
      case undefined:
        return call()
      case 'delay':
        return clock.sleep(fault.ms).then(call)
      case 'before':
        return Promise.reject(fault.error)
      case 'lost':
        return undefined
      case 'after':
        return Promise.resolve(call()).then(() => {
          throw fault.error
        })
    }
  }
}
