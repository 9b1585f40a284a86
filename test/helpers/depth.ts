// How deep this run goes. The same guarantees are held in three sizes: `npm run test:quick`, `npm test` and `npm run test:long`.

export type Depth = 'quick' | 'usual' | 'long'

/** What one test uses up: seeds, pairs, requests, kills. `quick` is `usual` where it is not given. */
export interface Sizes<T> {
  readonly quick?: T
  readonly usual: T
  readonly long: T
}

export const DEPTH = depthOf(process.env.TEST_DEPTH)

function depthOf(given = 'usual'): Depth {
  if (given === 'quick' || given === 'usual' || given === 'long') return given
  throw new RangeError(`TEST_DEPTH takes quick, usual or long, not ${given}`)
}

/** The size for this run. */
export const sized = <T>({ quick, usual, long }: Sizes<T>): T =>
  DEPTH === 'long' ? long : DEPTH === 'quick' ? (quick ?? usual) : usual
