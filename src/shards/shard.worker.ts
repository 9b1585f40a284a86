// Entry of a shard's thread: one task that lasts as long as the shard.

import type { MessagePort } from 'node:worker_threads'
import type { ShardStart } from './protocol.ts'
import { runShard } from './shard.ts'

export default async function run({ start, port }: { start: ShardStart; port: MessagePort }): Promise<void> {
  await runShard(start, port)
  port.close()
}
