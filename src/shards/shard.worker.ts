// Entry of a shard's thread: one task that lasts as long as the shard.

import type { ShardTask } from './protocol.ts'
import { runShard } from './shard.ts'

export default async function run(task: ShardTask): Promise<void> {
  await runShard(task)
  task.port.close()
}
