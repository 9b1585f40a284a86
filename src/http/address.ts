// Text of a peer's address from the 4 or 16 bytes the socket reports.

/** IPv4 dotted, IPv6 as RFC 5952, IPv4-mapped IPv6 as IPv4; '' for any other length. */
export function addressOfBytes(bytes: Uint8Array): string {
  if (bytes.length === 4) return dotted(bytes, 0)
  if (bytes.length !== 16) return ''
  const groups: number[] = []
  for (let i = 0; i < 16; i += 2) groups.push(((bytes[i] as number) << 8) | (bytes[i + 1] as number))
  if (groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0)) return dotted(bytes, 12)
  return compressed(groups)
}

function dotted(bytes: Uint8Array, at: number): string {
  return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`
}

function compressed(groups: readonly number[]): string {
  let start = -1
  let length = 1
  for (let i = 0; i < 8; ) {
    let end = i
    while (end < 8 && groups[end] === 0) end++
    if (end - i > length) {
      start = i
      length = end - i
    }
    i = end + 1
  }
  const hex = groups.map((group) => group.toString(16))
  if (start < 0) return hex.join(':')
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`
}
