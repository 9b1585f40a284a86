// Which driver serves, and whether its listeners can share a port, is found out and told.

import t from 'tap'
import { findPort, takePort } from '../../src/http/find-port.ts'
import { DriverMissing, driverOf } from '../../src/http/server.ts'
import { DRIVERS, exchange, openTestServer } from '../helpers/http.ts'

t.test('auto is the native driver where it is there, and one that is not there is told', async (t) => {
  const hasNative = DRIVERS.includes('uws')
  t.equal(driverOf('node'), 'node')
  t.equal(driverOf('auto'), hasNative ? 'uws' : 'node')
  if (hasNative) t.equal(driverOf('uws'), 'uws')
  else t.throws(() => driverOf('uws'), DriverMissing)
})

for (const driver of DRIVERS) {
  t.test(`two listeners share a port exactly where that was found out: ${driver}`, async (t) => {
    const { port, isShared } = await findPort(driver, '127.0.0.1', 0)
    const place = { driver, port, isShared: true }
    const first = await openTestServer(place)
    t.teardown(first.close)
    const second = await openTestServer(place).catch(() => null)
    t.teardown(() => second?.close())
    t.equal(second !== null, isShared)
    for (const server of [first, second]) server?.route('GET', '/', () => ({ status: 200 }))
    t.equal((await exchange(port, '200', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')).outcome(), '200')
  })
}

t.test(
  'a port that another process takes before it is bound is given up where any will do, and only there',
  async (t) => {
    const took: number[] = []
    async function listenTooLate(port: number) {
      if (took.push(port) === 1) {
        const other = await openTestServer({ driver: 'node', port })
        t.teardown(other.close)
      }
      const own = await openTestServer({ driver: 'node', port })
      t.teardown(own.close)
    }
    const port = await takePort('node', '127.0.0.1', 0, (found) => listenTooLate(found.port))
    t.equal(took.length, 2)
    t.equal(port, took[1])
    took.length = 0
    const { port: wanted } = await findPort('node', '127.0.0.1', 0)
    await t.rejects(
      takePort('node', '127.0.0.1', wanted, () => listenTooLate(wanted)),
      { name: 'PortBusy' },
    )
  },
)
