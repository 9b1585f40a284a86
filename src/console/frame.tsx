// What stands around every page: rail, environment, the box that jumps to any id, the person.

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { sentenceOf } from './lib/act.ts'
import { call, chooseEnvironment, environment, session } from './lib/api.ts'
import { notices, notify } from './lib/notices.ts'
import { pageOfId } from './lib/place.ts'
import { RAIL } from './pages.ts'

export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M14 6h3v20h-3zM8 9h14l4 3.5-4 3.5H8z" />
    </svg>
  )
}

export function Shell({ children }: { readonly children: ComponentChildren }) {
  const [path] = useLocation()
  const name = RAIL.find(([to]) => isWithin(path, to))?.[1] ?? 'Page'
  useEffect(() => {
    document.title = `${name} · Fingerpost`
    // Where the rail is a strip the page's own link may be out of sight.
    document.querySelector('.rail [aria-current=page]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [name])
  return (
    <div class="shell" data-environment={environment.value}>
      <a class="skip" href="#content">
        Skip to the page
      </a>
      <header class="top">
        <Link href="/" class="brand">
          <Mark />
          <span>{session.value?.workspace.name}</span>
        </Link>
        <Environments />
        <Jump />
        <Person />
      </header>
      <nav class="rail" aria-label="Pages">
        <ul>
          {RAIL.map(([to, text]) => (
            <li key={to}>
              <Link href={to} aria-current={isWithin(path, to) ? 'page' : undefined}>
                {text}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <Notices />
    </div>
  )
}

const isWithin = (path: string, to: string): boolean => path === to || (to !== '/' && path.startsWith(`${to}/`))

function Environments() {
  const [path, go] = useLocation()
  function choose(env: 'live' | 'test'): void {
    if (env === environment.value) return
    chooseEnvironment(env)
    // What the address names belongs to the other environment.
    go(`/${path.split('/')[1] ?? ''}`)
  }
  return (
    <fieldset class="switch" aria-label="Environment">
      {(['live', 'test'] as const).map((env) => (
        <button key={env} type="button" aria-pressed={environment.value === env} onClick={() => choose(env)}>
          {env === 'live' ? 'Live' : 'Test'}
        </button>
      ))}
    </fieldset>
  )
}

function Jump() {
  const [, go] = useLocation()
  const [text, setText] = useState('')
  const [isUnknown, setIsUnknown] = useState(false)
  function jump(event: Event): void {
    event.preventDefault()
    const page = pageOfId(text)
    if (text.trim() === '') return
    if (page !== null) go(page)
    else go(`/visitors?q=${encodeURIComponent(text.trim())}`)
    setIsUnknown(page === null)
    setText('')
  }
  return (
    <search class="jump">
      <form onSubmit={jump}>
        <input
          type="search"
          value={text}
          placeholder="Jump to an id, or find an account or e-mail"
          aria-label="Jump to an id, or find an account or e-mail"
          maxLength={320}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <span class="unseen" role="status">
          {isUnknown ? 'That is no id; visitors are searched for it.' : ''}
        </span>
      </form>
    </search>
  )
}

function Person() {
  const person = session.value?.person
  if (person === undefined) return null
  async function leave(): Promise<void> {
    try {
      await call('/console/api/sign-out', { method: 'POST' })
      session.value = null
    } catch (error) {
      // Where the session was over already, the sign-in is shown by now.
      if (session.value) notify(`You are still signed in: ${sentenceOf(error as Error)}`)
    }
  }
  return (
    <div class="row">
      <Link href="/settings?tab=you">{person.name}</Link>
      <span class="chip" data-kind="open">
        {person.role}
      </span>
      <button type="button" class="slim" onClick={() => void leave()}>
        Sign out
      </button>
    </div>
  )
}

function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  )
}
