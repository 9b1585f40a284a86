// What a chart draws: one line with its name.

export interface PlotSeries {
  readonly name: string
  /** A colour of the tokens: `--series-<name>`. */
  readonly values: readonly number[]
}
