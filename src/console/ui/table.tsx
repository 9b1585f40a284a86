// A table that scrolls within itself, and the button that reads on.

import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import type { Pages } from '../lib/load.ts'
import { Problem, Reading } from './state.tsx'

/** The name of a column; of one with numbers it stands at their side. */
export type ColumnName = string | { readonly number: string }
const nameOf = (column: ColumnName): string => (typeof column === 'string' ? column : column.number)

interface TableProps {
  /** For those who cannot see what stands around it. */
  readonly label: string
  readonly head: readonly ColumnName[]
  readonly children: ComponentChildren
}

export const Table = ({ children, ...table }: TableProps) => (
  <TableOfBodies {...table}>
    <tbody>{children}</tbody>
  </TableOfBodies>
)

function TableOfBodies({ label, head, children }: TableProps) {
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
        {children}
      </table>
    </section>
  )
}

interface PageRowsProps<T> {
  readonly rows: readonly T[]
  readonly row: (one: T) => ComponentChildren
  readonly dependsOn: unknown
}

/** A page that was read is not made anew when another one comes: a list of many thousand rows would stand still each time. */
function PageRows<T>({ rows, row, dependsOn }: PageRowsProps<T>) {
  return useMemo(() => <tbody>{rows.map(row)}</tbody>, [rows, dependsOn])
}

/** Rows that are read page by page. */
export function PagedTable<T>({
  label,
  head,
  of: pages,
  row,
  dependsOn,
  empty,
}: {
  readonly label: string
  readonly head: readonly ColumnName[]
  readonly of: Pages<T>
  readonly row: (one: T) => ComponentChildren
  /** What rows show besides themselves; while it is the same they stay. */
  readonly dependsOn?: unknown
  readonly empty: ComponentChildren
}) {
  if (pages.isFirst) return pages.error === null ? <Reading /> : <Problem error={pages.error} retry={pages.reload} />
  if (pages.rows.length === 0) return <>{empty}</>
  return (
    <>
      <TableOfBodies label={label} head={head}>
        {pages.pages.map((rows, i) => (
          <PageRows key={i} rows={rows} row={row} dependsOn={dependsOn} />
        ))}
      </TableOfBodies>
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
