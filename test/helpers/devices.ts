// Browsers on devices that have next to nothing in common, for tests of who is who.

import { browserBody, CHROME } from './client.ts'

/** The `n`th device, with hardware of that `kind`: a body for identify with a test key. */
export function deviceOf(n: number, kind = n) {
  const device = browserBody(`ANGLE (NVIDIA, NVIDIA GeForce GTX ${kind} Direct3D11 vs_5_0 ps_5_0, D3D11)`)
  Object.assign(device.components, {
    audio: { value: 700 + n },
    fonts: { value: [`Font ${n}`] },
    canvas: { value: { winding: true, geometry: `g${n}`, text: `t${n}`, stable: true } },
    screenResolution: { value: [1_000 + 100 * n, 700 + 50 * n] },
  })
  return { ...device, userAgent: CHROME, mock: { ip: `198.${n}.100.7` } }
}
export type Device = ReturnType<typeof deviceOf>
