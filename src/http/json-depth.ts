// Nesting of a parsed JSON value. Parsing needs no stack whatever the depth (V8), but copying, comparing and printing do: what
// is too deep for them stops here. Measured on the value this costs an eighth of a scan of the bytes.

/** True when arrays and objects nest deeper than `depthMax`; never looks further down than that. */
export const nestsDeeper = (value: unknown, depthMax: number): boolean =>
  typeof value === 'object' && value !== null && holdsDeeper(value, depthMax)

// Most of what is in them are plain values: a call for each of those would take twice as long.
function holdsDeeper(value: object, depthMax: number): boolean {
  if (depthMax === 0) return true
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i]
      if (typeof item === 'object' && item !== null && holdsDeeper(item, depthMax - 1)) return true
    }
    return false
  }
  // Values of JSON.parse have no inherited properties that this could meet.
  for (const name in value) {
    const item = (value as Record<string, unknown>)[name]
    if (typeof item === 'object' && item !== null && holdsDeeper(item, depthMax - 1)) return true
  }
  return false
}
