// Runs a test of HTTP once over each driver that this Node.js has.

import type { Test } from 'tap'
import type { Driver, HttpConfig } from '../../src/http/server.ts'
import { DRIVERS, openForwardedServer, openTestServer, type TestServer } from './http.ts'

type Open = (config?: Partial<HttpConfig>) => Promise<TestServer>

export interface Over {
  readonly driver: Driver
  /** `openTestServer` and `openForwardedServer` over the driver. */
  readonly open: Open
  readonly openForwarded: Open
}

/** `file`: the root of the test file. */
export function overDrivers(file: Test, title: string, check: (t: Test, over: Over) => Promise<void>): void {
  for (const driver of DRIVERS) {
    const over: Over = {
      driver,
      open: (config) => openTestServer({ driver, ...config }),
      openForwarded: (config) => openForwardedServer({ driver, ...config }),
    }
    void file.test(`${title}: ${driver}`, (t) => check(t, over))
  }
}
