// How wide a line is in the fonts a reader or the system has chosen: in a frame of its own, which the page's styles do not reach. The
// library's probe does the same, but fills its frame in a way that pages with trusted types refuse.

import { withIframe } from '@fingerprintjs/fingerprintjs'
import { trustedHtml } from './trusted.ts'

const sample = 'mmMwWLliI0fiflO&1'
/** Firefox on Android applies the system's text size only to pages that say this. */
const frame = '<!doctype html><html><head><meta name="viewport" content="width=device-width, initial-scale=1">'
/** Chrome on Android applies it only to wide blocks with several lines of text. */
const widthPx = 4_000
const words = widthPx / 20

const presets: Record<string, Record<string, string>> = {
  default: {},
  apple: { font: '-apple-system-body' },
  serif: { fontFamily: 'serif' },
  sans: { fontFamily: 'sans-serif' },
  mono: { fontFamily: 'monospace' },
  // The smallest size the settings allow.
  min: { fontSize: '1px' },
  system: { fontFamily: 'system-ui' },
}

/** Widths in CSS pixels by preset, whatever the page's zoom. */
export function probeFontPreferences(): Promise<Record<string, number>> {
  return withIframe((_, view) => {
    const { document } = view
    const { body } = document
    // Only Chromium says what it is here; it scales with the zoom, others take the size of the text as it is.
    const isChromium = 'userAgentData' in navigator || 'chrome' in window
    const scale = isChromium ? view.devicePixelRatio : 1
    Object.assign(body.style, { width: `${widthPx}px`, textSizeAdjust: 'none', webkitTextSizeAdjust: 'none' })
    Object.assign(body.style, { zoom: isChromium ? String(1 / scale) : 'reset' })
    const lines = document.createElement('div')
    lines.textContent = 'word '.repeat(words)
    body.append(lines)
    // All are made before the first is measured, so that the page is laid out once.
    const spans = Object.entries(presets).map(([name, style]) => {
      const span = document.createElement('span')
      span.textContent = sample
      Object.assign(span.style, { whiteSpace: 'nowrap' }, style)
      body.append(document.createElement('br'), span)
      return { name, span }
    })
    const digits = /Android/.test(navigator.userAgent) ? 1 : 1_000
    return Object.fromEntries(
      spans.map(({ name, span }) => {
        const width = span.getBoundingClientRect().width * scale
        return [name, isChromium ? Math.floor(width * digits) / digits : width]
      }),
    )
  }, trustedHtml(frame))
}
