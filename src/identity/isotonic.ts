// Shares that must not fall from one bin to the next: neighbours that do are pooled (isotonic regression by pooling adjacent violators).

/** For each bin its share, weighed and pooled until they grow. `weights` are positive. */
export function growing(shares: readonly number[], weights: readonly number[]): number[] {
  const share: number[] = []
  const weight: number[] = []
  const size: number[] = []
  for (let bin = 0; bin < shares.length; bin++) {
    share.push(shares[bin] as number)
    weight.push(weights[bin] as number)
    size.push(1)
    while (share.length > 1 && (share[share.length - 2] as number) > (share[share.length - 1] as number)) {
      const [b, bw, bs] = [share.pop() as number, weight.pop() as number, size.pop() as number]
      const [a, aw, as] = [share.pop() as number, weight.pop() as number, size.pop() as number]
      share.push((a * aw + b * bw) / (aw + bw))
      weight.push(aw + bw)
      size.push(as + bs)
    }
  }
  return share.flatMap((one, block) => new Array<number>(size[block] as number).fill(one))
}
