// What a process says at /metrics, taken apart.

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Scrape {
  readonly text: string
  /** By the name of the metric. */
  readonly types: ReadonlyMap<string, string>
  readonly samples: readonly Sample[]
  /** Of all samples of this name that have these labels. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g

function labelsOf(text = ''): Record<string, string> {
  return Object.fromEntries(Array.from(text.matchAll(LABEL), ([, name = '', value = '']) => [name, value]))
}

export function readMetrics(text: string): Scrape {
  const lines = text.split('\n')
  const types = new Map(
    lines.flatMap((line) => {
      const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
      return name === undefined || type === undefined ? [] : [[name, type] as const]
    }),
  )
  const samples = lines.flatMap((line): Sample[] => {
    const [, name, labels, value] = LINE.exec(line) ?? []
    return name === undefined ? [] : [{ name, labels: labelsOf(labels), value: Number(value) }]
  })
  return {
    text,
    types,
    samples,
    sum: (name, wanted = {}) =>
      samples
        .filter((one) => one.name === name)
        .filter(({ labels }) => Object.entries(wanted).every(([label, value]) => labels[label] === value))
        .reduce((sum, { value }) => sum + value, 0),
  }
}

export async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(`${url}/metrics`)
  if (response.status !== 200) throw new Error(`/metrics: ${response.status}`)
  return readMetrics(await response.text())
}
