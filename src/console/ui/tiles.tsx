// The figures on top of a page, each with a word about it.

export type Tile = readonly [name: string, value: string, about: string]

export function Tiles({ of: tiles }: { readonly of: readonly Tile[] }) {
  return (
    <dl class="tiles">
      {tiles.map(([name, value, about]) => (
        <div key={name} class="tile">
          <dt>{name}</dt>
          <dd>{value}</dd>
          <dd class="quiet change">{about}</dd>
        </div>
      ))}
    </dl>
  )
}
