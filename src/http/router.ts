// From path and method to a route: literal paths by map, patterns with `:name` and a final `*` by segments.

export interface Resource<T> {
  readonly pattern: string
  /** By lower-case method. */
  readonly methods: Map<string, T>
}

export interface Found<T> {
  readonly resource: Resource<T>
  readonly params: Readonly<Record<string, string>>
}

interface Shape<T> {
  readonly segments: readonly string[]
  readonly rest: boolean
  readonly resource: Resource<T>
}

/**
 * Literal paths win over patterns, patterns without a final `*` over those with one, and among those the earlier one.
 * A `:name` takes one non-empty segment; nothing is decoded and a trailing slash is a different path.
 */
export function openRouter<T>() {
  const literal = new Map<string, Found<T>>()
  const shapes: Shape<T>[] = []
  const resources = new Map<string, Resource<T>>()

  return {
    /** Adds the pattern's resource, or returns it when there is one. */
    resource(pattern: string): Resource<T> {
      const known = resources.get(pattern)
      if (known !== undefined) return known
      const resource: Resource<T> = { pattern, methods: new Map() }
      resources.set(pattern, resource)
      if (!/[:*]/.test(pattern)) {
        literal.set(pattern, { resource, params: {} })
        return resource
      }
      const segments = pattern.split('/')
      const rest = segments.at(-1) === '*'
      if (rest) segments.pop()
      shapes.push({ segments, rest, resource })
      shapes.sort((a, b) => Number(a.rest) - Number(b.rest))
      return resource
    },

    find(path: string): Found<T> | null {
      const exact = literal.get(path)
      if (exact !== undefined) return exact
      const parts = path.split('/')
      for (const shape of shapes) {
        const params = match(shape, parts)
        if (params !== null) return { resource: shape.resource, params }
      }
      return null
    },
  }
}

function match<T>(shape: Shape<T>, parts: readonly string[]): Record<string, string> | null {
  const { segments, rest } = shape
  if (rest ? parts.length <= segments.length : parts.length !== segments.length) return null
  const params: Record<string, string> = {}
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i] as string
    const part = parts[i] as string
    if (segment.startsWith(':')) {
      if (part === '') return null
      params[segment.slice(1)] = part
    } else if (segment !== part) return null
  }
  if (rest) params['*'] = parts.slice(segments.length).join('/')
  return params
}
