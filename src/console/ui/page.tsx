// The head of a page: what it is, and what can be done about all of it.

import type { ComponentChildren } from 'preact'

export function Page({
  title,
  about,
  actions,
  children,
}: {
  readonly title: ComponentChildren
  readonly about?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) {
  return (
    <div class="page">
      <div class="head">
        <div>
          <h1>{title}</h1>
          {about !== undefined && <p class="quiet">{about}</p>}
        </div>
        {actions !== undefined && <div class="row">{actions}</div>}
      </div>
      {children}
    </div>
  )
}

export function Card({
  title,
  actions,
  children,
}: {
  readonly title: string
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) {
  return (
    <section class="card">
      <div class="row spread">
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  )
}

export function Tabs<T extends string>({
  label,
  chosen,
  choose,
  tabs,
}: {
  readonly label: string
  readonly chosen: T
  readonly choose: (tab: T) => void
  readonly tabs: readonly (readonly [T, string])[]
}) {
  return (
    <nav class="row" aria-label={label}>
      {tabs.map(([tab, text]) => (
        <button
          key={tab}
          type="button"
          class={tab === chosen ? 'primary' : ''}
          aria-current={tab === chosen ? 'page' : undefined}
          onClick={() => choose(tab)}
        >
          {text}
        </button>
      ))}
    </nav>
  )
}
