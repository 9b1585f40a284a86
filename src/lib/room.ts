// Lists that are as long as they will be from their start, to be filled in order: one that grows from nothing makes room for sixteen
// items at once, and so does the list of length 0 for four, and most of a visit have one item or two.

export const roomFor = <T>(count: number): T[] => (count === 0 ? [] : new Array(count))

/** The same for numbers alone: the compiler learns of this list that it holds no objects, and keeps them in it. */
export const roomForNumbers = (count: number): number[] => (count === 0 ? [] : new Array(count))
