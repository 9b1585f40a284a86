// Whether functions may be made from source in this process.

function tryGenerating(): boolean {
  try {
    return new Function('return true')() === true
  } catch {
    return false
  }
}
/** False in a process started with --disallow-code-generation-from-strings. */
export const generationAllowed: boolean = tryGenerating()
