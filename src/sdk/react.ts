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

type State = Omit<UseFingerpostResult, 'identify'>

/** Touches no page before the component is shown, so that it can be rendered on a server. What is not of the key or the endpoint counts as of the first identification. */
export function useFingerpost(options: UseFingerpostOptions): UseFingerpostResult {
  const { publicKey, endpoint, immediate = true } = options
  // An array is a new one with every rendering.
  const service = `${publicKey} ${[endpoint ?? []].flat().join(' ')}`
  const newest = useRef<UseFingerpostOptions>(options)
  newest.current = options
  const client = useRef<{ of: string; opened: Client } | null>(null)
  const turn = useRef<number>(0)
  const [state, setState] = useState<State>({ data: null, error: null, isLoading: immediate })

  const identify = useCallback(
    async (request?: GetOptions) => {
      turn.current += 1
      const mine = turn.current
      // What an earlier call brings, or one of a component that is gone, is shown no more.
      const show = (next: (before: State) => State) => {
        if (turn.current === mine) setState(next)
      }
      show((before) => ({ ...before, isLoading: true }))
      try {
        if (client.current?.of !== service) {
          const { request: _request, immediate: _immediate, ...loading } = newest.current
          client.current = { of: service, opened: load(loading) }
        }
        const data = await client.current.opened.get(request)
        show(() => ({ data, error: null, isLoading: false }))
        return data
      } catch (error) {
        show((before) => ({ ...before, error: error as Error, isLoading: false }))
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
    }
  }, [identify, immediate])

  return { ...state, identify }
}
