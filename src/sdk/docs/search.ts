// Finds in the index of the documentation: every word of the question must stand in an entry, those in its title count most.

/** `[kind, title, detail, address, names parted by spaces]`, as `src/api/reference/pages/search.ts` writes it. */
export type Entry = readonly [kind: string, title: string, detail: string, address: string, names: string]

export interface Hit {
  readonly entry: Entry
  /** The name by which it was found, where neither title nor detail has the word. */
  readonly name: string | null
}

const HITS_MAX = 14
/** Many webhook events have one field: they must not hide the endpoints that have it too. */
const OF_A_KIND_MAX = 5
const WORDS_MAX = 8
/** How much a name among the fields of an entry says of what is looked for. */
const NAMED: Readonly<Record<string, number>> = { Endpoint: 1.2, Guide: 1.1 }
const isEdge = (character: string | undefined): boolean => character === undefined || /[^a-z0-9]/.test(character)

/** What a word is worth in a text that says what the entry is about; 0 where it is not there. */
function worth(text: string, word: string): number {
  if (text === word) return 100
  let best = 0
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    const begins = at === 0 ? 60 : isEdge(text[at - 1]) ? 40 : 15
    const isWhole = begins > 15 && isEdge(text[at + word.length])
    best = Math.max(best, isWhole ? begins + 25 : begins)
  }
  return best
}

function nameLike(names: string, word: string): readonly [worth: number, name: string | null] {
  let found: readonly [number, string | null] = [0, null]
  for (const name of names.split(' ')) {
    const plain = name.toLowerCase()
    const own = plain === word ? 30 : plain.startsWith(word) ? 12 : plain.includes(word) ? 4 : 0
    if (own > found[0]) found = [own, name]
  }
  return found
}

function judge(entry: Entry, words: readonly string[]): readonly [worth: number, hit: Hit] {
  const [kind, title, detail, , names] = entry
  const [lowTitle, lowDetail] = [title.toLowerCase(), detail.toLowerCase()]
  let sum = 0
  let shown: string | null = null
  for (const word of words) {
    const said = Math.max(worth(lowTitle, word), worth(lowDetail, word) * 0.6)
    const [named, name] = said > 0 ? [0, null] : nameLike(names, word)
    if (said + named === 0) return [0, { entry, name: null }]
    sum += said + named * (NAMED[kind] ?? 1)
    shown ??= name
  }
  return [sum, { entry, name: shown }]
}

/** The best first; entries of equal worth in the order of the index. */
export function find(index: readonly Entry[], question: string): Hit[] {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean).slice(0, WORDS_MAX)
  if (words.length === 0) return []
  const ofKind = new Map<string, number>()
  return index
    .map((entry) => judge(entry, words))
    .filter(([worth]) => worth > 0)
    .sort(([a], [b]) => b - a)
    .map(([, hit]) => hit)
    .filter(({ entry: [kind] }) => {
      const before = ofKind.get(kind) ?? 0
      ofKind.set(kind, before + 1)
      return before < OF_A_KIND_MAX
    })
    .slice(0, HITS_MAX)
}
