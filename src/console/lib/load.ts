// Reading what a page shows: again when what it asks changes, and never showing an answer to an older question.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { call, environment, queryString, type RequestOptions } from './api.ts'
import type { CursorPage, OffsetPage } from './types.ts'

export interface Loaded<T> {
  /** undefined: nothing yet. */
  readonly data: T | undefined
  readonly error: Error | null
  readonly isLoading: boolean
  /** Gives up a read that is under way, since what it asks about may just have been changed. */
  readonly reload: () => void
}

/** Reads by `read` whenever `key` changes; null reads nothing. */
export function useLoadBy<T>(key: string | null, read: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string | null; data?: T; error: Error | null; isLoading: boolean }>({
    key: null,
    error: null,
    isLoading: key !== null,
  })
  const [round, setRound] = useState(0)
  const latest = useRef(read)
  latest.current = read
  useEffect(() => {
    if (key === null) return
    const leaving = new AbortController()
    setState((before) => ({ ...before, isLoading: true }))
    latest
      .current(leaving.signal)
      .then((data) => setState({ key, data, error: null, isLoading: false }))
      .catch((error: Error) => {
        if (leaving.signal.aborted) return
        // What was read of the same stays; of another it would be taken for the answer.
        setState((before) => ({ ...(before.key === key ? before : {}), key, error, isLoading: false }))
      })
    return () => leaving.abort()
  }, [key, round])
  const reload = useCallback(() => setRound((before) => before + 1), [])
  const isCurrent = state.key === key
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : null,
    isLoading: state.isLoading,
    reload,
  }
}

/** Reads a path of the API; null reads nothing. */
export function useLoad<T>(path: string | null, ask: RequestOptions = {}): Loaded<T> {
  const key = path === null ? null : `${environment.value} ${path}${queryString(ask.query)}`
  return useLoadBy<T>(key, (signal) => call<T>(path ?? '', { ...ask, signal }))
}

const ITEMS_PER_CALL = 100

/** Reads all of a collection with offsets, which is as short as people can look through; null reads nothing. */
export function useAll<T>(path: string | null): Loaded<OffsetPage<T>> {
  const key = path === null ? null : `${environment.value} all ${path}`
  return useLoadBy<OffsetPage<T>>(key, async (signal) => {
    const data: T[] = []
    for (;;) {
      const query = { limit: ITEMS_PER_CALL, offset: data.length }
      const page = await call<OffsetPage<T>>(path ?? '', { query, signal })
      data.push(...page.data)
      if (page.data.length < ITEMS_PER_CALL) return { data, total: data.length }
    }
  })
}

export interface Pages<T> extends Omit<Loaded<unknown>, 'data'> {
  /** As they were read; one that was read stays the same array. */
  readonly pages: readonly (readonly T[])[]
  readonly rows: readonly T[]
  readonly hasMore: boolean
  readonly more: () => void
  readonly isFirst: boolean
}

/** Reads page after page, appended. */
export function usePages<T>(path: string | null, ask: RequestOptions = {}): Pages<T> {
  const first = useLoad<CursorPage<T>>(path, ask)
  const [later, setLater] = useState<{
    of: CursorPage<T>
    pages: readonly (readonly T[])[]
    cursor: string | null
  } | null>(null)
  const [failed, setFailed] = useState<{ of: CursorPage<T>; error: Error } | null>(null)
  const [isReading, setIsReading] = useState(false)
  const page = first.data
  const own = later !== null && later.of === page ? later : null
  const cursor = own === null ? (page?.nextCursor ?? null) : own.cursor

  async function more(): Promise<void> {
    if (page === undefined || cursor === null || isReading) return
    setIsReading(true)
    try {
      const next = await call<CursorPage<T>>(path ?? '', { ...ask, query: { ...ask.query, cursor } })
      setLater({ of: page, pages: [...(own?.pages ?? []), next.data], cursor: next.nextCursor })
      setFailed(null)
    } catch (failure) {
      setFailed({ of: page, error: failure as Error })
    } finally {
      setIsReading(false)
    }
  }

  const pages = page === undefined ? [] : [page.data, ...(own?.pages ?? [])]
  return {
    pages,
    rows: pages.flat(),
    hasMore: cursor !== null,
    more: () => void more(),
    isFirst: page === undefined,
    isLoading: first.isLoading || isReading,
    error: first.error ?? (failed !== null && failed.of === page ? failed.error : null),
    reload: first.reload,
  }
}

/** Reads again every so often while the page can be seen; an answer that takes longer than that is waited for. */
export function useEvery(ms: number, loaded: Pick<Loaded<unknown>, 'isLoading' | 'reload'>, isOn = true): void {
  const latest = useRef(loaded)
  latest.current = loaded
  useEffect(() => {
    if (!isOn) return
    const timer = setInterval(() => {
      if (!document.hidden && !latest.current.isLoading) latest.current.reload()
    }, ms)
    return () => clearInterval(timer)
  }, [ms, isOn])
}

/** A value that follows `value` once it has not changed for so long. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return settled
}
