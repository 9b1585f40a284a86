// Chooses the backend of the bus; nothing else knows which one runs.
import type { Bus } from './bus.ts'
import { type LocalBusConfig, openLocalBus } from './local.ts'

export type BusConfig = { readonly backend: 'local' } & LocalBusConfig

export async function openBus(config: BusConfig): Promise<Bus> {
  const { backend, ...rest } = config
  switch (backend) {
    case 'local':
      return openLocalBus(rest)
  }
}
