// Addresses as SQL: the engine keeps every one as IPv6 and has a spelling of its own for some.

/** The canonical text of an IPv6 column: the engine writes IPv4 mapped, and gives ::/96 a dotted tail. */
export function addressText(sql: string): string {
  const shown = `IPv6NumToString(${sql})`
  const group = (shift: number): string => {
    const digits = `trim(LEADING '0' FROM lower(hex(bitAnd(toUInt32(bitShiftRight(toUInt128(${sql}), ${shift})), 65535))))`
    return `if(${digits} = '', '0', ${digits})`
  }
  const dotted = `position(${shown}, '.') > 0`
  return `multiIf(NOT (${dotted}), ${shown}, startsWith(${shown}, '::ffff:'), substring(${shown}, 8), concat('::', ${group(16)}, ':', ${group(0)}))`
}
