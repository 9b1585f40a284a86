// The component vocabulary as Chromium answers it: every name, and what its value looks like.

// biome-ignore lint/suspicious/noExplicitAny: each check says itself which shape it expects
export type Check = (value: any) => boolean
export const isString: Check = (value) => typeof value === 'string' && value.length > 0
export const isNumber: Check = (value) => typeof value === 'number' && Number.isFinite(value)
const isBoolean: Check = (value) => typeof value === 'boolean'
const isNull: Check = (value) => value === null
const isPair: Check = (value) => Array.isArray(value) && value.length === 2 && value.every(isNumber)
const isStrings: Check = (value) => Array.isArray(value) && value.every((item) => typeof item === 'string')
const has = (shape: Record<string, Check>): Check => {
  const names = Object.keys(shape)
  return (value) =>
    Object.keys(value).sort().join() === names.sort().join() && names.every((name) => shape[name]?.(value[name]))
}
const isAnyString: Check = (value) => typeof value === 'string'

/** Every name of the vocabulary, and what its value looks like in Chromium. */
export const vocabulary: Record<string, Check> = {
  userAgent: isString,
  userAgentData: has({
    platform: isString,
    platformVersion: isAnyString,
    model: isAnyString,
    architecture: isString,
    bitness: isString,
    mobile: isBoolean,
    fullVersionList: (list) => list.length > 0 && list.every(has({ brand: isString, version: isString })),
  }),
  platform: isString,
  vendor: isString,
  languages: (value) => Array.isArray(value) && value.length > 0 && value.every(isStrings),
  timezone: isString,
  dateTimeLocale: isString,
  hardwareConcurrency: isNumber,
  deviceMemory: isNumber,
  osCpu: isNull,
  architecture: isNumber,
  screenResolution: isPair,
  screenFrame: (value) => value.length === 4 && value.every(isNumber),
  devicePixelRatio: isNumber,
  colorDepth: isNumber,
  colorGamut: isString,
  hdr: isBoolean,
  contrast: isNumber,
  reducedMotion: isBoolean,
  reducedTransparency: isBoolean,
  invertedColors: isNull,
  audioBaseLatency: isNull,
  forcedColors: isBoolean,
  monochrome: isNumber,
  pdfViewerEnabled: isBoolean,
  window: has({ inner: isPair, outer: isPair }),
  touchSupport: has({ maxTouchPoints: isNumber, touchEvent: isBoolean, touchStart: isBoolean }),
  pointer: has({ fine: isBoolean, coarse: isBoolean, hover: isBoolean }),
  systemStyle: has({ highlight: isString, font: isString }),
  inspected: isBoolean,
  canvas: has({ winding: isBoolean, geometry: isString, text: isString, stable: (value) => value === true }),
  canvasNoise: (value) => value === 0,
  audio: isNumber,
  math: (value) => Object.values(value).length > 5 && Object.values(value).every(isNumber),
  webGlBasics: has({
    vendor: isString,
    renderer: isString,
    vendorUnmasked: isString,
    rendererUnmasked: isString,
    version: isString,
    shadingLanguageVersion: isString,
  }),
  webGlExtensions: has({ extensions: (list) => isStrings(list) && list.length > 0, parametersHash: isString }),
  fonts: isStrings,
  fontPreferences: (value) => Object.values(value).length > 3 && Object.values(value).every(isNumber),
  plugins: (value) => Array.isArray(value) && value.every((plugin) => isString(plugin.name)),
  mediaDevices: has({ audioinput: isNumber, audiooutput: isNumber, videoinput: isNumber }),
  voices: isNumber,
  storage: has({ quota: isNumber, cookies: isBoolean, localStorage: isBoolean, indexedDB: isBoolean }),
  permissions: has({ notifications: isString, notificationPermission: isString }),
  incognito: has({ isPrivate: (value) => value === false, browserName: isString }),
  worker: has({
    userAgent: isString,
    platform: isString,
    languages: isStrings,
    timezone: isString,
    hardwareConcurrency: isNumber,
    deviceMemory: isNumber,
    webGlRenderer: isString,
  }),
  lies: (value) => Array.isArray(value) && value.length === 0,
  evalLength: (value) => value === 33,
  errorFormat: isString,
}
