// All signals of one visit. Each is a pure function in a file of its own; what the data at hand cannot tell stays
// undetermined.

import type { Signals } from '../../domain/event.ts'
import { botTypeOf, detectBot } from './bot.ts'
import { detectEmulator } from './emulator.ts'
import type { SignalInput } from './evidence.ts'
import { detectIncognito } from './incognito.ts'
import { detectClonedApp, detectRootedDevice } from './native-flags.ts'
import { detectProxy } from './proxy.ts'
import { detectTampered } from './tampered.ts'
import { detectTor } from './tor.ts'
import { detectVpn, vpnProviderOf } from './vpn.ts'

export function detectSignals(input: SignalInput): Signals {
  const tampered = detectTampered(input)
  const bot = detectBot(input, tampered)
  return {
    bot,
    vpn: detectVpn(input),
    incognito: detectIncognito(input.attributes),
    tampered,
    emulator: detectEmulator(input),
    proxy: detectProxy(input),
    tor: detectTor(input),
    rootedDevice: detectRootedDevice(input),
    clonedApp: detectClonedApp(input),
    vpnProvider: vpnProviderOf(input),
    botType: botTypeOf(input, bot),
  }
}
