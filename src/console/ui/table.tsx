// A table that scrolls within itself, and the button that reads on.

import type { ComponentChildren } from 'preact'
import type { Pages } from '../lib/load.ts'
import { Problem, Reading } from './state.tsx'

/** The name of a column; of one with numbers it stands at their side. */
export type ColumnName = string | { readonly number: string }
const nameOf = (column: ColumnName): string => (typeof column === 'string' ? column : column.number)

export function Table({
  label,
  head,
  children,
}: {
  /** For those who cannot see what stands around it. */
  readonly label: string
  readonly head: readonly ColumnName[]
  readonly children: ComponentChildren
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
    <section class="table" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {head.map((column) => (
              <th key={nameOf(column)} scope="col" class={typeof column === 'string' ? '' : 'number'}>
                {nameOf(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  )
}

/** Rows that are read page by page. */
export function PagedTable<T>({
  label,
  head,
  of: pages,
  row,
  empty,
}: {
  readonly label: string
  readonly head: readonly ColumnName[]
  readonly of: Pages<T>
  readonly row: (one: T) => ComponentChildren
  readonly empty: ComponentChildren
}) {
  if (pages.isFirst) return pages.error === null ? <Reading /> : <Problem error={pages.error} retry={pages.reload} />
  if (pages.rows.length === 0) return <>{empty}</>
  return (
    <>
      <Table label={label} head={head}>
        {pages.rows.map(row)}
      </Table>
      <Problem error={pages.error} />
      {pages.hasMore && (
        <p class="row">
          <button type="button" onClick={pages.more} disabled={pages.isLoading}>
            Load older
          </button>
        </p>
      )}
    </>
  )
}
