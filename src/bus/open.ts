// Chooses the backend of the bus; nothing else knows which one runs.
import type { Bus } from './bus.ts'
import { type LocalBusConfig, openLocalBus } from './local.ts'
import { type NatsBusConfig, openNatsBus } from './nats.ts'

export type BusConfig =
  | ({ readonly backend: 'local' } & LocalBusConfig)
  | ({ readonly backend: 'nats' } & NatsBusConfig)

export async function openBus(config: BusConfig): Promise<Bus> {
  switch (config.backend) {
    case 'local':
      return openLocalBus(config)
    case 'nats':
      return openNatsBus(config)
  }
}
