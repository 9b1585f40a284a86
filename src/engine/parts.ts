// What a partition consists of, and the one way decisions change it.

import type { RandomBytes } from '../domain/ids.ts'
import type { DecidedItem } from '../events/packed-items.ts'
import { openParsers, type Parsers } from '../identity/parsers.ts'
import { type AddressFacts, NO_FACTS } from '../ipintel/addresses.ts'
import { VELOCITY } from '../records/partitions.ts'
import type { CompiledRuleset } from '../rules/snapshot.ts'
import { type Allowance, openAllowance } from './allowance.ts'
import { createMatchCounts, type MatchCounts } from './match-counts.ts'
import { createMergedRecords, MERGED_RECORDS, type MergedRecords, type StoredMergedRecords } from './merged-records.ts'
import { createNonces, type Nonces } from './nonces.ts'
import { createState, type LoadedEntry, type PartitionState } from './state.ts'
import { type Board, createBoard, type StoredCounter } from './velocity/board.ts'
import { type Counted, unpackCounted } from './velocity/counted.ts'
import { openLeaving } from './velocity/leaving.ts'
import { createVisitorCommands, type VisitorCommands } from './visitor-commands.ts'

export interface PartitionNeeds {
  readonly partition: number
  readonly partitions: number
  readonly random: RandomBytes
  /** Milliseconds that never jump. */
  readonly monotonic: () => number
  readonly ruleset: (workspace: string, env: string) => CompiledRuleset | null
  /** Clean visitors kept in memory. */
  readonly visitorsMax: number
  /** Records of one device that are healed per second; 0, the default: none. */
  readonly healsPerSecondMax?: number
  /** What is known of a canonical address; nothing by default. */
  readonly locate?: (ip: string) => AddressFacts
  /** Counters of addresses and accounts, with this partition open; by default it is alone. */
  readonly board?: Board
  /** Told the record that is about to be opened or decided. */
  readonly onRecord?: (seq: number) => void
}

export interface PartitionParts {
  readonly needs: PartitionNeeds
  readonly state: PartitionState
  readonly board: Board
  readonly orders: VisitorCommands
  readonly mergedRecords: MergedRecords
  readonly nonces: Nonces
  readonly matches: MatchCounts
  readonly parsers: Parsers
  readonly locate: (ip: string) => AddressFacts
  /** null: nobody is healed. */
  readonly healings: Allowance | null
  /** Takes in what was asked for when `askedAt` partitions had been opened in the thread. */
  load(loaded: readonly LoadedEntry[], askedAt: number): void
  /** Changes the state by a decision, fresh or adopted. Whoever has at hand what follows the item passes it; it is read from the item else. */
  apply(item: DecidedItem, tenant?: string, visitorId?: string, counted?: Counted | null): void
}

const knowNothing = (): AddressFacts => NO_FACTS

export function createPartitionParts(needs: PartitionNeeds): PartitionParts {
  const { partition, partitions, healsPerSecondMax = 0 } = needs
  const state = createState(needs.visitorsMax)
  const board = needs.board ?? createBoard(partitions, needs.visitorsMax)
  if (needs.board === undefined) board.open(partition)
  const mergedRecords = createMergedRecords(state, needs)
  const nonces = createNonces(needs.monotonic)
  const matches = createMatchCounts()

  return {
    needs,
    state,
    board,
    orders: createVisitorCommands(state, openLeaving(board, partition)),
    mergedRecords,
    nonces,
    matches,
    parsers: openParsers(),
    locate: needs.locate ?? knowNothing,
    healings: healsPerSecondMax === 0 ? null : openAllowance(healsPerSecondMax, needs.monotonic),
    load(loaded, askedAt) {
      state.load(loaded)
      for (const { kind, id, value } of loaded) {
        if (kind === VELOCITY) board.load(Number(id), (value as readonly StoredCounter[] | null) ?? [], askedAt)
        else if (kind === MERGED_RECORDS) mergedRecords.load(id, value as StoredMergedRecords)
      }
    },
    apply(
      item,
      tenant = `${item.workspace}/${item.env}/`,
      visitorId = tenant + item.visitorId,
      counted = item.counted === undefined ? null : unpackCounted(item.counted),
    ) {
      if (item.state.length > 0) {
        state.putVisitor(visitorId, item.state)
        for (const key of item.indexed) state.addToIndex(tenant + key, item.visitorId)
        if (item.left !== undefined) for (const key of item.left) state.dropFromIndex(tenant + key, item.visitorId)
      }
      if (item.lesson !== undefined) state.teach(item.lesson[0], item.lesson[1])
      if (counted !== null) board.add(partition, counted)
      matches.add(item, tenant)
      if (item.nonceHash !== 0) nonces.add(item)
    },
  }
}
