// Programs that drive a genuine Chromium and change nothing about it, and the people who could be mistaken for them. What
// the browsers of programs say is as Chromium 156 said it, driven over the DevTools protocol without its Runtime domain.

import t from 'tap'
import { scoreEvent } from '../../src/engine/scores.ts'
import { detectSignals } from '../../src/engine/signals/signals.ts'
import { networkOf } from '../helpers/network.ts'
import { attributesOf, bareLinux, firefox, type Request, type Values, windowsPc } from '../helpers/recognition.ts'

const SWIFTSHADER = {
  rendererUnmasked: 'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)',
}
const POINTER = { pointer: { fine: true, coarse: false, hover: true } }
const NO_POINTER = { pointer: { fine: false, coarse: false, hover: false } }
const BARE = { screenFrame: [0, 0, 0, 0] }
const UNEQUIPPED = { voices: 0, mediaDevices: { audioinput: 0, audiooutput: 0, videoinput: 0 } }
const EQUIPPED = { voices: 22, mediaDevices: { audioinput: 1, audiooutput: 1, videoinput: 1 } }
const windowOf = (inner: readonly number[], outer: readonly number[]): Values => ({ window: { inner, outer } })
/** A desktop as most people have it. */
const DESK = { ...POINTER, ...EQUIPPED, screenFrame: [0, 0, 40, 0], ...windowOf([1_920, 945], [1_920, 1_040]) }

const HIDDEN_HEADLESS: Values = {
  ...NO_POINTER,
  ...UNEQUIPPED,
  ...BARE,
  screenResolution: [1_920, 1_080],
  ...windowOf([1_920, 937], [1_920, 1_080]),
}
const ON_A_SERVER: Values = {
  ...POINTER,
  ...UNEQUIPPED,
  ...BARE,
  screenResolution: [1_920, 1_080],
  ...windowOf([945, 917], [945, 1_060]),
}
const EMULATED: Values = {
  ...POINTER,
  ...UNEQUIPPED,
  ...BARE,
  screenResolution: [1_280, 720],
  ...windowOf([1_280, 720], [780, 580]),
}

type Row = readonly [who: string, request: Request, methods?: readonly string[]]

const PROGRAMS: readonly Row[] = [
  [
    'headless with a screen of its own, drawing in software',
    bareLinux({ ...HIDDEN_HEADLESS, webGlBasics: SWIFTSHADER }),
    ['headless_equipment', 'headless_window', 'no_pointer', 'software_gpu'],
  ],
  [
    'headless with a screen of its own and a graphics card',
    bareLinux(HIDDEN_HEADLESS),
    ['headless_equipment', 'headless_window', 'no_pointer'],
  ],
  [
    'headless in a small window on a large screen',
    bareLinux({ ...HIDDEN_HEADLESS, ...windowOf([780, 437], [780, 580]) }),
    ['headless_equipment', 'no_pointer'],
  ],
  ['headless that was given voices', bareLinux({ ...HIDDEN_HEADLESS, voices: 19 }), ['headless_window', 'no_pointer']],
  ['headless with a page of a size of its own', bareLinux(EMULATED), ['viewport_emulated', 'bare_desk']],
  [
    'with a window, and a page of a size of its own',
    windowsPc({ ...DESK, screenResolution: [1_280, 720], ...windowOf([1_280, 720], [945, 1_060]) }),
    ['viewport_emulated'],
  ],
]

for (const [who, request, methods] of PROGRAMS) {
  t.test(`a program ${who} is a bot`, async (t) => {
    const signals = detectSignals({ attributes: attributesOf(request), evidence: [], network: networkOf({}) })
    t.match(signals, { bot: { state: 'detected', methods }, tampered: { state: 'clear' }, botType: 'automation' })
  })
}

const screenOf = (width: number, height: number): Values => ({ screenResolution: [width, height] })

const PEOPLE: readonly Row[] = [
  ['at a usual desk', windowsPc({ ...screenOf(1_920, 1_080), ...DESK }), []],
  [
    'with a touch screen and no mouse',
    windowsPc({
      ...DESK,
      ...UNEQUIPPED,
      ...BARE,
      pointer: { fine: false, coarse: true, hover: false },
      touchSupport: { maxTouchPoints: 10, touchEvent: true, touchStart: true },
    }),
    [],
  ],
  [
    'with a touch screen that reports no pointer at all',
    windowsPc({
      ...HIDDEN_HEADLESS,
      touchSupport: { maxTouchPoints: 10, touchEvent: true, touchStart: true },
    }),
    [],
  ],
  [
    'with developer tools open',
    windowsPc({ ...screenOf(1_920, 1_080), ...DESK, inspected: true }),
    ['inspector_attached'],
  ],
  [
    'with developer tools showing the page in another size',
    windowsPc({ ...DESK, ...screenOf(1_280, 720), inspected: true, ...windowOf([1_280, 720], [945, 1_040]) }),
    ['inspector_attached'],
  ],
  [
    'with developer tools open on a bare virtual machine that draws in software',
    bareLinux({ ...ON_A_SERVER, webGlBasics: SWIFTSHADER, inspected: true }),
    ['inspector_attached', 'software_gpu'],
  ],
  ['without 3D', windowsPc({ ...screenOf(1_920, 1_080), ...DESK, webGlBasics: undefined }), []],
  ['without 3D, sound or any bar on the screen', bareLinux(ON_A_SERVER), ['bare_desk']],
  [
    'at a remote desktop that fills the screen',
    windowsPc({
      ...DESK,
      ...screenOf(1_920, 1_080),
      voices: 3,
      mediaDevices: { audioinput: 0, audiooutput: 0, videoinput: 0 },
      webGlBasics: { rendererUnmasked: 'ANGLE (Microsoft, Microsoft Basic Render Driver Direct3D11 vs_5_0 ps_5_0)' },
    }),
    ['software_gpu'],
  ],
  [
    'zoomed out to a half',
    windowsPc({
      ...DESK,
      ...screenOf(1_920, 1_080),
      devicePixelRatio: 0.5,
      ...windowOf([3_840, 1_890], [1_920, 1_040]),
    }),
    [],
  ],
  [
    'zoomed out on a dense screen',
    windowsPc({ ...DESK, ...screenOf(1_440, 900), devicePixelRatio: 1.8, ...windowOf([1_584, 860], [1_440, 875]) }),
    [],
  ],
  [
    'in full screen',
    windowsPc({ ...DESK, ...BARE, ...screenOf(1_920, 1_080), ...windowOf([1_920, 1_080], [1_920, 1_080]) }),
    [],
  ],
  [
    'in full screen on a machine without sound',
    windowsPc({
      ...POINTER,
      ...BARE,
      voices: 3,
      mediaDevices: { audioinput: 0, audiooutput: 0, videoinput: 0 },
      ...screenOf(1_920, 1_080),
      ...windowOf([1_920, 1_080], [1_920, 1_080]),
    }),
    [],
  ],
  [
    'whose bar hides itself, in a maximised window',
    windowsPc({ ...DESK, ...BARE, ...screenOf(1_920, 1_080), ...windowOf([1_920, 985], [1_920, 1_080]) }),
    [],
  ],
  [
    'whose window spans two screens',
    windowsPc({ ...DESK, ...screenOf(1_920, 1_080), ...windowOf([3_824, 945], [3_840, 1_040]) }),
    [],
  ],
  ['without a mouse for the moment', windowsPc({ ...DESK, ...screenOf(1_920, 1_080), ...NO_POINTER }), ['no_pointer']],
  [
    'without a mouse, in full screen',
    windowsPc({ ...DESK, ...NO_POINTER, ...screenOf(1_920, 1_080), ...windowOf([1_920, 945], [1_920, 1_080]) }),
    ['no_pointer'],
  ],
  [
    'whose Firefox resists fingerprinting',
    firefox({
      ...UNEQUIPPED,
      ...BARE,
      ...NO_POINTER,
      canvasNoise: 256,
      screenResolution: [1_400, 900],
      ...windowOf([1_400, 900], [1_400, 900]),
    }),
    ['no_pointer'],
  ],
  [
    'whose Brave makes up screen, voices and devices',
    windowsPc(
      {
        ...POINTER,
        ...UNEQUIPPED,
        ...BARE,
        canvasNoise: 12,
        ...screenOf(1_204, 806),
        ...windowOf([1_204, 806], [1_200, 800]),
      },
      {},
      { 'sec-ch-ua': '"Brave";v="147", "Chromium";v="147"' },
    ),
    [],
  ],
  [
    'whose extension adds noise to drawings',
    bareLinux({ ...ON_A_SERVER, canvasNoise: 3, canvas: { geometry: 'a', text: 'b', stable: false } }),
    [],
  ],
  [
    'whose browser keeps devices and voices to itself',
    bareLinux({ ...ON_A_SERVER, voices: null, mediaDevices: null }),
    [],
  ],
  ['whose bar is not told', bareLinux({ ...ON_A_SERVER, screenFrame: [null, 0, 0, 0] }), []],
]

for (const [who, request, methods] of PEOPLE) {
  t.test(`a person ${who} is no bot`, async (t) => {
    for (const network of [networkOf({}), networkOf({ hosting: 'datacenter_range' })]) {
      const { bot } = detectSignals({ attributes: attributesOf(request), evidence: [], network })
      const expected = network.address.hosting === null ? methods : [...(methods ?? []), 'datacenter']
      t.match(bot, { state: 'clear', methods: expected })
    }
  })
}

const NOTHING_ELSE = {
  confidence: 1,
  hasAccount: false,
  newDeviceForAccount: null,
  linkedAccounts: 0,
  possibleVisitor: false,
  listed: false,
  velocity: null,
  impossibleTravel: false,
} as const

t.test(
  'what speaks for a program without being enough raises suspect, and nothing raises it from nothing',
  async (t) => {
    const suspectOf = (r: Request) => {
      const signals = detectSignals({ attributes: attributesOf(r), evidence: [], network: networkOf({}) })
      return scoreEvent({ ...NOTHING_ELSE, signals })
    }
    t.equal(suspectOf(windowsPc({ ...screenOf(1_920, 1_080), ...DESK })).scores.suspect, 0)
    t.match(suspectOf(bareLinux(ON_A_SERVER)), {
      scores: { bot: 0.25, suspect: 12.5 },
      reasons: [{ reason: 'bare_desk' }, { score: 'suspect', reason: 'bot_evidence', weight: 0.125 }],
    })
    const attached = suspectOf(windowsPc({ ...DESK, inspected: true }))
    t.equal(attached.scores.suspect, 32)
    t.ok(suspectOf(bareLinux(HIDDEN_HEADLESS)).scores.suspect > 70, 'and a program counts as one')
  },
)

t.test('a clear outcome that a test key forces leaves suspect as it is', async (t) => {
  const signals = detectSignals({ attributes: attributesOf(windowsPc()), evidence: [], network: networkOf({}) })
  const forced = { ...signals, bot: { ...signals.bot, confidence: 1, source: 'mock' as const } }
  t.equal(scoreEvent({ ...NOTHING_ELSE, signals: forced }).scores.suspect, 0)
})
