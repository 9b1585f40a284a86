// A page whose script is read when it is first opened.

import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Problem, Reading } from '../ui/state.tsx'

export interface PageProps {
  /** Of what the page is about; '' where the address names nothing. */
  readonly id: string
}

export function later(read: () => Promise<ComponentType<PageProps>>): ComponentType<PageProps> {
  let known: ComponentType<PageProps> | null = null
  return function Later(props: PageProps) {
    const [Page, setPage] = useState<ComponentType<PageProps> | null>(() => known)
    const [error, setError] = useState<Error | null>(null)
    useEffect(() => {
      if (known !== null) return
      read().then(
        (page) => {
          known = page
          setPage(() => page)
        },
        () =>
          setError(new Error('This page could not be read. The server may have a newer version: load the page again.')),
      )
    }, [])
    if (error !== null) return <Problem error={error} retry={() => location.reload()} />
    return Page === null ? <Reading /> : <Page {...props} />
  }
}
