// The React hook: identifies this browser when a component is shown, and again when it is asked to.

import { load } from '@fingerpost/browser'
import { useCallback, useEffect, useRef, useState } from 'react'
import type { Client, GetOptions, IdentifyResult, LoadOptions, PendingResult } from './types.ts'

export type UseFingerpostOptions = LoadOptions & {
  /** Sent with the identification that the hook makes by itself. */
  request?: GetOptions
  /** false: nothing is sent before `identify` is called, for example because consent is not there yet. Default true. */
  immediate?: boolean
}

export type UseFingerpostResult = {
  /** The newest answer; null before the first. */
  data: IdentifyResult | PendingResult | null
  /** Why the newest identification failed; null when it did not. */
  error: Error | null
  isLoading: boolean
  /** Identifies again. Fails as `Client.get` does. */
  identify: (request?: GetOptions) => Promise<IdentifyResult | PendingResult>
}

/** `of`: the service that was asked. */
type State = Omit<UseFingerpostResult, 'identify'> & { of: string }

// A list of endpoints is a new one with every rendering.
const serviceOf = ({ publicKey, endpoint }: LoadOptions): string => `${publicKey} ${[endpoint ?? []].flat().join(' ')}`

const nothingOf = (of: string, isLoading: boolean): State => ({ of, data: null, error: null, isLoading })

/** Touches no page before the component is shown, so that it can be rendered on a server. What is not of the key or the endpoint counts as of the first identification. */
export function useFingerpost(options: UseFingerpostOptions): UseFingerpostResult {
  const { immediate = true } = options
  const service = serviceOf(options)
  const newest = useRef<UseFingerpostOptions>(options)
  newest.current = options
  const client = useRef<{ of: string; opened: Client } | null>(null)
  const turn = useRef<number>(0)
  const [state, setState] = useState<State>(nothingOf(service, immediate))

  // A new one for another service, for effects that depend on it; who kept an older one asks the newest service too.
  const identify = useCallback(
    async (request?: GetOptions) => {
      const of = serviceOf(newest.current)
      turn.current += 1
      const mine = turn.current
      // What an earlier call brings, or one of a component that is gone, is shown no more.
      const show = (news: Partial<State>) => {
        if (turn.current !== mine) return
        setState((before) => ({ ...(before.of === of ? before : nothingOf(of, false)), ...news }))
      }
      show({ isLoading: true })
      try {
        if (client.current?.of !== of) {
          const { request: _request, immediate: _immediate, ...loading } = newest.current
          client.current = { of, opened: load(loading) }
        }
        const data = await client.current.opened.get(request)
        show({ data, error: null, isLoading: false })
        return data
      } catch (error) {
        show({ error: error as Error, isLoading: false })
        throw error
      }
    },
    [service],
  )

  useEffect(() => {
    // Its failure is in `error`.
    if (immediate) identify(newest.current.request).catch(() => undefined)
    return () => {
      turn.current += 1
      // Nobody waits for what was asked until now: an identification that follows begins loading again.
      setState((before) => ({ ...before, isLoading: false }))
    }
  }, [identify, immediate])

  const { data, error, isLoading } = state.of === service ? state : nothingOf(service, immediate)
  return { data, error, isLoading, identify }
}
