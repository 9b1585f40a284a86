// What is read of a device beside its hardware: in the shapes of FingerprintJS 5, never what a browser makes up, and worth something.

import t from 'tap'
import {
  AUDIO_LATENCY,
  BUILD,
  CORES,
  DISPLAY,
  EQUIPMENT,
  FIRST_VALUES,
  FONT_PREFERENCES,
  FRAME,
  PREFERENCES,
  VALUE_NAMES,
  VOICES,
  WEBGL,
} from '../../src/identity/profile.ts'
import { newVisitor } from '../../src/identity/visitor.ts'
import { packVisitor, unpackVisitor } from '../../src/identity/visitor-record.ts'
import { attributesOf, iphone, openStore, type Values, windowsPc } from '../helpers/recognition.ts'

const HOME = '203.0.113.7'
const FONT_WIDTHS = { default: 149.3, apple: 149.3, serif: 149.3, sans: 144.1, mono: 121.5, min: 9.3, system: 147.8 }
const TRAITS: Values = {
  fontPreferences: FONT_WIDTHS,
  contrast: 0,
  reducedMotion: false,
  reducedTransparency: false,
  invertedColors: false,
  forcedColors: false,
  monochrome: 0,
  pdfViewerEnabled: true,
  colorGamut: 'srgb',
  hdr: false,
  screenFrame: [0, 0, 40, 0],
  voices: 22,
  webGlExtensions: { extensions: ['OES_texture_float'], parametersHash: 'abcdef' },
  mediaDevices: { audioinput: 1, audiooutput: 1, videoinput: 1 },
  audioBaseLatency: 0.01,
  plugins: [{ name: 'PDF Viewer' }],
  dateTimeLocale: 'cs-CZ',
}
const valuesOf = (values: Values) => attributesOf(windowsPc({ ...TRAITS, ...values })).profile.values
const POSITIONS = [FONT_PREFERENCES, PREFERENCES, DISPLAY, FRAME, VOICES, WEBGL, EQUIPMENT, AUDIO_LATENCY, BUILD]

t.test('every component changes the value it belongs to and no other', async (t) => {
  const before = valuesOf({})
  for (const position of POSITIONS) t.type(before[position], 'number', VALUE_NAMES[position] ?? '')
  const changes: readonly (readonly [number, Values])[] = [
    [FONT_PREFERENCES, { fontPreferences: { ...FONT_WIDTHS, default: 171 } }],
    [PREFERENCES, { contrast: 1 }],
    [PREFERENCES, { contrast: -1 }],
    [PREFERENCES, { reducedMotion: true }],
    [PREFERENCES, { reducedTransparency: true }],
    [PREFERENCES, { invertedColors: true }],
    [PREFERENCES, { forcedColors: true }],
    [PREFERENCES, { forcedColors: undefined }],
    [PREFERENCES, { monochrome: 8 }],
    [DISPLAY, { colorGamut: 'p3' }],
    [DISPLAY, { hdr: true }],
    [FRAME, { screenFrame: [0, 0, 50, 0] }],
    [VOICES, { voices: 23 }],
    [WEBGL, { webGlExtensions: { extensions: [], parametersHash: 'abcdef' } }],
    [EQUIPMENT, { mediaDevices: { audioinput: 2, audiooutput: 1, videoinput: 1 } }],
    [AUDIO_LATENCY, { audioBaseLatency: 0.02 }],
    [BUILD, { dateTimeLocale: 'de-DE' }],
    [BUILD, { plugins: [] }],
    [BUILD, { pdfViewerEnabled: false }],
  ]
  for (const [position, change] of changes) {
    const changed = valuesOf(change).flatMap((value, i) => (value === before[i] ? [] : [i]))
    t.same(changed, [position], JSON.stringify(change))
  }
})

t.test('what was not told, or may not have been ready, is not known', async (t) => {
  const none = attributesOf(windowsPc({ colorDepth: undefined })).profile.values
  for (const position of POSITIONS) t.equal(none[position], null, VALUE_NAMES[position] ?? '')
  t.equal(valuesOf({ voices: 0 })[VOICES], null, 'voices are loaded late')
  t.equal(valuesOf({ screenFrame: [null, 0, 0, 0] })[FRAME], null)
  t.equal(valuesOf({ mediaDevices: null })[EQUIPMENT], null)
})

t.test('values of the wrong kind count as not told', async (t) => {
  for (const wrong of [{}, [], 'x', -5, 1e9, true, [[[]]], { default: 'x' }]) {
    const values = valuesOf(Object.fromEntries(Object.keys(TRAITS).map((name) => [name, wrong])))
    for (const position of POSITIONS) {
      const value = values[position]
      t.ok(value === null || (typeof value === 'number' && Number.isFinite(value)), VALUE_NAMES[position] ?? '')
    }
  }
})

t.test('a browser that adds noise is not taken at its word; WebKit rounds cores with it', async (t) => {
  const noisy = valuesOf({ canvasNoise: 12 })
  for (const position of [FRAME, VOICES, WEBGL, EQUIPMENT, AUDIO_LATENCY, BUILD]) t.equal(noisy[position], null)
  t.equal(noisy[CORES], 12, 'Chromium keeps its cores')
  t.equal(attributesOf(iphone({ canvasNoise: 12 })).profile.values[CORES], null)
  t.equal(attributesOf(iphone()).profile.values[CORES], 4)
})

t.test('iPhones of one model at one address are told apart by the size of their text', async (t) => {
  const larger = { ...TRAITS, fontPreferences: { ...FONT_WIDTHS, default: 171, apple: 171 }, reducedMotion: true }
  const store = openStore()
  const { visitor } = store.visit(iphone(TRAITS), HOME)
  t.not(store.visit(iphone(larger), HOME).visitor.id, visitor.id)
  t.equal(store.visit(iphone(TRAITS), HOME).visitor.id, visitor.id)
})

t.test('a docked laptop is the same though its other screen shows other colours in another frame', async (t) => {
  const store = openStore()
  const { visitor } = store.visit(windowsPc(TRAITS), HOME)
  const docked = { ...TRAITS, screenResolution: [3840, 2160], colorGamut: 'p3', hdr: true, screenFrame: [0, 0, 0, 0] }
  t.equal(store.visit(windowsPc(docked), HOME).visitor.id, visitor.id)
})

t.test('a profile that was stored before reads what it did not know as unknown', async (t) => {
  const values = valuesOf({})
  const profile = {
    os: 'Windows',
    family: 'Chrome',
    major: 147,
    gpuClass: 'nvidia',
    values: values.slice(0, FIRST_VALUES),
  }
  const stored = unpackVisitor(packVisitor({ ...newVisitor('pv_00000000000000000000', 0), profile }))
  t.same(stored.profile?.values, [...values.slice(0, FIRST_VALUES), ...POSITIONS.map(() => null)])
})
