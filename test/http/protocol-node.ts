// Where the driver over node:http differs from the native one, by name of the case. The native driver closes without a word on what it
// cannot read; Node.js tells us, so that it is answered. Its parser checks line ends behind chunks, so such a fault is known.

const among = (outcome: string, names: readonly string[]) => names.map((name) => [name, outcome] as const)

export const NODE_OUTCOMES: ReadonlyMap<string, string> = new Map([
  ...among('400 closed', [
    'a method nobody knows',
    'a lower-case method',
    'CONNECT to a path',
    'CONNECT host:port',
    // Its parser takes no such byte in a path.
    'bytes above 127 in a path',
    'a length above 64 bits',
    ...['-1', '+2', '2abc', '0x2', '2, 2', '1 1', '1.0', 'abc', '"2"', '1e1'].map(
      (value) => `Content-Length: ${value}`,
    ),
    'a chunk size that is none',
    'a negative chunk size',
    'a chunk size above 64 bits',
    'no line end behind a chunk',
    'a chunk extension',
    'length and chunks',
    'chunks and length',
    'HTTP/0.9',
    'HTTP/2.0',
    'no version',
    'no host',
    'bare line feeds',
    'a folded header',
    'a NUL in a value',
    'a carriage return in a value',
    'a bad character in a name',
    'a space before the colon',
    'a header without a colon',
    'the start of TLS',
    'garbage',
    'a chunk extension',
    'a chunk extension behind a space',
    'a space behind the size of a chunk',
    'an extension of the second chunk',
    'an extension of the last chunk',
    'a chunk extension in pieces',
    'a chunk without a size',
    'a bare line feed behind the size of a chunk',
    'a bare line feed in the head',
    'a bare line feed at its end',
  ]),
  ...among('400 closed|closed', [
    'no line end behind a chunk, a request behind it',
    'a length behind a header without a name, a request as body',
    'a length behind a header without a name, a request as body a moment later',
  ]),
  ...among('413 closed', ['a length above 2^30']),
  ...among('431 closed', ['twenty thousand headers']),
  // What is still being sent may take the answer with it.
  ...among('431 closed|closed', ['a header of a megabyte']),
  ...among('404 closed', ['OPTIONS *']),
  // The connection of HTTP/1.0 ends at once, those of the others when they have been idle.
  ...among('200 closed', [
    'HTTP/1.0',
    'an underscore in a name',
    'an absolute URI',
    'a leading empty line',
    'sixty headers',
  ]),
])
