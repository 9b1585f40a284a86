// Nesting of a parsed JSON value. Parsing needs no stack whatever the depth (V8), but copying, comparing and printing do: what
// is too deep for them stops here. Measured on the value this costs an eighth of a scan of the bytes.

/** True when arrays and objects nest deeper than `depthMax`; never looks further down than that. */
export function nestsDeeper(value: unknown, depthMax: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (depthMax === 0) return true
  if (Array.isArray(value)) {
    for (const item of value) if (nestsDeeper(item, depthMax - 1)) return true
    return false
  }
  // Values of JSON.parse have no inherited properties that this could meet.
  for (const name in value) if (nestsDeeper((value as Record<string, unknown>)[name], depthMax - 1)) return true
  return false
}
