// Loaded into a server: to it the machine always has four cores that nobody uses, whatever else runs on it.

import { syncBuiltinESMExports } from 'node:module'
import os, { type CpuInfo } from 'node:os'

const CORES = 4

os.cpus = (): CpuInfo[] =>
  Array.from({ length: CORES }, () => ({
    model: 'idle',
    speed: 0,
    times: { user: 0, nice: 0, sys: 0, irq: 0, idle: Math.round(performance.now()) },
  }))
syncBuiltinESMExports()
