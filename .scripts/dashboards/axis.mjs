// Values of Grafana's units as text, and the marks of an axis.

const short = (value) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3))))

/** The largest of `steps` that is not above `value`, in units of it. */
function scaled(value, steps) {
  const [size, unit] = steps.find(([from]) => Math.abs(value) >= from) ?? steps.at(-1)
  return `${short(value / size)}${unit}`
}

const COUNTS = [
  [1e9, ' G'],
  [1e6, ' M'],
  [1e3, ' k'],
  [1, ''],
]
const SECONDS = [
  [86_400, ' d'],
  [3_600, ' h'],
  [60, ' min'],
  [1, ' s'],
  [1e-3, ' ms'],
  [1e-6, ' µs'],
]
const BYTES = [
  [2 ** 40, ' TiB'],
  [2 ** 30, ' GiB'],
  [2 ** 20, ' MiB'],
  [2 ** 10, ' KiB'],
  [1, ' B'],
]
const plain = (value, unit = '') => `${Math.abs(value) < 1 ? short(value) : scaled(value, COUNTS)}${unit}`

const FORMATS = {
  none: plain,
  s: (value) => (value === 0 ? '0' : scaled(value, SECONDS)),
  bytes: (value) => scaled(value, BYTES),
  percentunit: (value) => `${short(value * 100)} %`,
  reqps: (value) => plain(value, '/s'),
  cps: (value) => plain(value, '/s'),
  rowsps: (value) => plain(value, '/s'),
}

export const formatOf = (unit) => FORMATS[unit]

/** Marks from 0 to at least `most`, some four of them, round in the unit. */
export function ticksUpTo(most, unit) {
  if (most <= 0) return [0, unit === 'bytes' ? 1_024 : 1]
  const base = unit === 'bytes' ? 1_024 ** Math.floor(Math.log(most) / Math.log(1_024)) : 1
  const rough = most / base / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((times) => times * power).find((one) => one >= rough * 0.999) * base
  const count = Math.max(1, Math.ceil((most / step) * 0.999))
  return Array.from({ length: count + 1 }, (_, at) => at * step)
}
