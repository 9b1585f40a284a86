// The one function of the package tz-lookup, which comes without types.

declare module 'tz-lookup' {
  /** The IANA time zone at a place; throws RangeError for what is no place. */
  function timezoneAt(latitude: number, longitude: number): string
  export = timezoneAt
}
