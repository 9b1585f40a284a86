// The HTTP server: binds a port by one of two drivers and hands every request to a dispatch.
import { Told } from '../lib/failures.ts'
import { type DispatchConfig, openDispatch, type Routes, type Serve } from './dispatch.ts'
import { listenNode } from './node.ts'
import type { Listen, Listener, Place } from './port.ts'
import { isNativePresent, listenNative } from './uws.ts'

/** uws: native, where its binary loads. node: what Node.js brings. */
export type Driver = 'uws' | 'node'

export interface HttpConfig extends DispatchConfig, Place {
  /** Default: `uws` where it is there. */
  readonly driver?: Driver
}

export interface Http extends Routes, Listener {
  readonly driver: Driver
}

export interface OwnHttp extends Http {
  /** What has no route here is served elsewhere from now on. */
  passOn(elsewhere: Serve): void
}

/** The setting asks for a driver that is not there. */
export class DriverMissing extends Told {
  override readonly name = 'DriverMissing'
}

const noBinary = () =>
  `no binary of uWebSockets.js loads on Node.js ${process.version}, ${process.platform} ${process.arch}`

/** The driver that `http.driver` means here. Fails with DriverMissing. */
export function driverOf(wanted: string): Driver {
  if (wanted === 'node' || (wanted !== 'uws' && !isNativePresent())) return 'node'
  if (isNativePresent()) return 'uws'
  throw new DriverMissing(`http.driver is uws, and ${noBinary()}`)
}

/** What a start says of the driver that serves. */
export function driverText(wanted: string): string {
  if (driverOf(wanted) === 'uws') return 'HTTP is served by uWebSockets.js'
  return wanted === 'node' ? 'HTTP is served by Node.js' : `HTTP is served by Node.js: ${noBinary()}`
}

/** Binds the port for this process alone, unless it is shared, and has `receiver` serve what comes. Fails with PortBusy. */
export const bind = (driver: Driver): Listen => (driver === 'uws' ? listenNative : listenNode)

/** Listens for this process alone, unless the port is shared. Fails with PortBusy when that is impossible. */
export async function openHttp(config: HttpConfig): Promise<OwnHttp> {
  const dispatch = openDispatch(config)
  const driver = config.driver ?? driverOf('auto')
  const listening = await bind(driver)(config, dispatch)
  return {
    ...dispatch,
    ...listening,
    driver,
    close() {
      listening.close()
      dispatch.close()
    },
  }
}
