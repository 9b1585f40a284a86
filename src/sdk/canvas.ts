// Canvas probes: two independent drawings (a browser that adds noise draws them differently) and a solid fill read back.

import { murmurX64Hash128 } from '@fingerprintjs/fingerprintjs'

export type CanvasValue = { winding: boolean; geometry: string; text: string; stable: boolean }

/** Hashes of a geometric and a text drawing; `stable` says that drawing them again gave the same pixels. */
export function probeCanvas(): CanvasValue {
  const first = drawBoth()
  const second = drawBoth()
  return {
    winding: supportsWinding(),
    geometry: murmurX64Hash128(first.geometry),
    text: murmurX64Hash128(first.text),
    stable: first.geometry === second.geometry && first.text === second.text,
  }
}

/** How many of the 256 pixels of a plain fill come back in another colour: 0 unless the browser adds noise. */
export function probeCanvasNoise(): number {
  const size = 16
  const { context } = makeCanvas(size, size)
  const fill = [117, 58, 201, 255] as const
  context.fillStyle = `rgb(${fill[0]}, ${fill[1]}, ${fill[2]})`
  context.fillRect(0, 0, size, size)
  const pixels = context.getImageData(0, 0, size, size).data
  let wrong = 0
  for (let i = 0; i < pixels.length; i += 4) {
    if (fill.some((channel, offset) => pixels[i + offset] !== channel)) wrong += 1
  }
  return wrong
}

function drawBoth(): { geometry: string; text: string } {
  return { geometry: drawGeometry(), text: drawText() }
}

function drawGeometry(): string {
  const { canvas, context } = makeCanvas(122, 110)
  // Blending and anti-aliased edges are where graphics stacks differ.
  context.globalCompositeOperation = 'multiply'
  const discs = [
    ['#f2f', 40, 40],
    ['#2ff', 80, 40],
    ['#ff2', 60, 80],
  ] as const
  for (const [colour, x, y] of discs) {
    context.fillStyle = colour
    context.beginPath()
    context.arc(x, y, 40, 0, Math.PI * 2, true)
    context.closePath()
    context.fill()
  }
  context.fillStyle = '#f9c'
  context.arc(60, 60, 60, 0, Math.PI * 2, true)
  context.arc(60, 60, 20, 0, Math.PI * 2, true)
  context.fill('evenodd')
  return canvas.toDataURL()
}

function drawText(): string {
  const { canvas, context } = makeCanvas(240, 60)
  context.textBaseline = 'alphabetic'
  context.fillStyle = '#f60'
  context.fillRect(100, 1, 62, 20)
  context.fillStyle = '#069'
  // Two families and an emoji: fallback, hinting and emoji fonts tell systems apart.
  context.font = '11pt "Times New Roman"'
  const sample = `Cwm fjordbank gly ${String.fromCharCode(55357, 56835)}`
  context.fillText(sample, 2, 15)
  context.fillStyle = 'rgba(102, 204, 0, 0.2)'
  context.font = '18pt Arial'
  context.fillText(sample, 4, 45)
  return canvas.toDataURL()
}

function supportsWinding(): boolean {
  const { context } = makeCanvas(1, 1)
  context.rect(0, 0, 10, 10)
  context.rect(2, 2, 6, 6)
  return !context.isPointInPath(5, 5, 'evenodd')
}

function makeCanvas(width: number, height: number): { canvas: HTMLCanvasElement; context: CanvasRenderingContext2D } {
  const canvas = document.createElement('canvas')
  canvas.width = width
  canvas.height = height
  const context = canvas.getContext('2d')
  if (!context) throw new Error('unsupported')
  return { canvas, context }
}
