// What came back from a provider is not what a sign-in that began here ends with; the message is for the log.

export class Untrusted extends Error {
  override readonly name = 'Untrusted'
}
