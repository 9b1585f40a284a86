// What the whole page is: being read, the ways in, or the console with the page of its address.

import { useEffect, useState } from 'preact/hooks'
import { Redirect, Route, Router, Switch, useLocation } from 'wouter-preact'
import { Shell } from './frame.tsx'
import { GATE_WAYS, Gate } from './gate.tsx'
import { environment, readSession, session } from './lib/api.ts'
import { CONSOLE_BASE } from './lib/place.ts'
import { CONSOLE_ROUTES } from './pages.ts'
import { Empty, Problem } from './ui/state.tsx'

export function ConsoleApp() {
  return (
    <Router base={CONSOLE_BASE}>
      <Whole />
    </Router>
  )
}

function Whole() {
  const [path] = useLocation()
  const [error, setError] = useState<Error | null>(null)
  const read = () => readSession().then(() => setError(null), setError)
  useEffect(() => {
    void read()
  }, [])
  // Neither needs to know who is signed in nor goes away meanwhile: what it took out of the address would be lost.
  if (GATE_WAYS.includes(path)) return <Gate path={path} />
  if (session.value === undefined) {
    if (error === null) return null
    return (
      <div class="gate">
        <Problem error={error} retry={() => void read()} />
      </div>
    )
  }
  if (session.value === null) return <Gate path={path} />
  return <Inside />
}

function Inside() {
  return (
    <Shell>
      {/* What is shown belongs to one environment: another one starts every page anew. */}
      <Switch key={environment.value}>
        {CONSOLE_ROUTES.map(({ path, Page }) => (
          <Route key={path} path={path}>
            {(params: Readonly<Record<string, string | undefined>>) => <Page id={params.id ?? ''} />}
          </Route>
        ))}
        <Route path="/sign-in">
          <Redirect to="/" replace />
        </Route>
        <Route>
          <Empty title="There is no such page">The address may be of another version of the console.</Empty>
        </Route>
      </Switch>
    </Shell>
  )
}
