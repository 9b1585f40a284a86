// Many moments as one parameter of SQL. Typed as they are compared: made of numbers by a function, they cost the engine milliseconds each.

/** The parameter `times`, of `momentText`s. */
export const MOMENTS = "{times:Array(DateTime64(3, 'UTC'))}"

/** As the engine reads it. Milliseconds. */
export const momentText = (ms: number): string => new Date(ms).toISOString().slice(0, -1).replace('T', ' ')
