// What the hook uses of React, which is whoever installs the package's own: the SDK depends on nothing.

declare module 'react' {
  export function useCallback<T>(callback: T, dependencies: readonly unknown[]): T
  export function useEffect(effect: () => (() => void) | undefined, dependencies: readonly unknown[]): void
  export function useRef<T>(initial: T): { current: T }
  export function useState<T>(initial: T): [T, (next: (before: T) => T) => void]
}
