// What a window shows of the desk it stands on: a program gives it a size nobody could see, or a machine nobody sits at.

import type { Attributes } from '../../identity/attributes.ts'
import { BOT } from '../weights.ts'
import { type EvidenceTally, raise } from './evidence.ts'

/** A page that the browser was told to lay out for a screen larger than the window it is shown in. */
function isLaidOutBeyond({ screen, inner, outer }: Attributes['claims']['desk']): boolean {
  if (screen === null || inner === null || outer === null) return false
  // Zooming out makes a page larger than its window as well, but hardly ever exactly as large as the screen.
  if (inner[0] !== screen[0] || inner[1] !== screen[1]) return false
  return inner[0] > outer[0] || inner[1] > outer[1]
}

const fills = ({ screen, outer }: Attributes['claims']['desk']): boolean =>
  screen !== null && outer !== null && outer[0] >= screen[0] && outer[1] >= screen[1]

/**
 * Of desktops with Chromium only: privacy tools of other browsers make these values up. With developer tools open neither size nor
 * a bare machine says more than they do: they can show a page in any size.
 */
export function deskChecks(tally: EvidenceTally, attributes: Attributes, isPointless: boolean): void {
  const { claims, ua, deviceType, privacyNoise, touchPoints } = attributes
  if (deviceType !== 'desktop' || ua.engine !== 'Blink' || privacyNoise || (touchPoints ?? 0) > 0) return
  const { desk, inspected } = claims
  const isUnequipped = desk.voices === 0 && desk.devices === 0
  if (isPointless) {
    if (isUnequipped) raise(tally, 'headless_equipment', BOT.headless_equipment)
    if (desk.isBare === true && fills(desk)) raise(tally, 'headless_window', BOT.headless_window)
  }
  if (inspected) return
  if (isLaidOutBeyond(desk)) raise(tally, 'viewport_emulated', BOT.viewport_emulated)
  if (!isPointless && isUnequipped && desk.isBare === true) raise(tally, 'bare_desk', BOT.bare_desk)
}
