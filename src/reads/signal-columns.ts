// Where a row says which signals were detected.

import type { SignalName } from '../domain/event.ts'

export const SIGNAL_COLUMNS: Readonly<Record<SignalName, string>> = {
  bot: 'sig_bot',
  vpn: 'sig_vpn',
  incognito: 'sig_incognito',
  tampered: 'sig_tampered',
  emulator: 'sig_emulator',
  proxy: 'sig_proxy',
  tor: 'sig_tor',
  rootedDevice: 'sig_rooted_device',
  clonedApp: 'sig_cloned_app',
}
