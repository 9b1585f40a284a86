// The component names in plain words and in the order the demo page shows them.

export type TraitGroup = { title: string; components: readonly (readonly [name: string, meaning: string])[] }

export const groups: readonly TraitGroup[] = [
  {
    title: 'Browser and system',
    components: [
      ['userAgent', 'How the browser introduces itself'],
      ['userAgentData', 'The same, in detail'],
      ['platform', 'Operating system the browser was built for'],
      ['vendor', 'Maker of the browser'],
      ['languages', 'Preferred languages'],
      ['timezone', 'Time zone'],
      ['dateTimeLocale', 'Format of dates'],
      ['hardwareConcurrency', 'Processor cores'],
      ['deviceMemory', 'Memory in GB, rounded'],
      ['architecture', 'Processor family, by how it calculates'],
      ['osCpu', 'Processor and system, in Firefox'],
    ],
  },
  {
    title: 'Screen and input',
    components: [
      ['screenResolution', 'Size of the screen'],
      ['screenFrame', 'Space taken by task bars'],
      ['devicePixelRatio', 'Scale of the display'],
      ['window', 'Size of the window'],
      ['colorDepth', 'Bits per colour'],
      ['colorGamut', 'Range of colours'],
      ['hdr', 'High dynamic range'],
      ['touchSupport', 'Touch input'],
      ['pointer', 'Whether a mouse, pen or finger can point'],
      ['systemStyle', 'Selection colour and font of the system'],
    ],
  },
  {
    title: 'Graphics, sound and fonts',
    components: [
      ['canvas', 'Fingerprint of two small drawings'],
      ['canvasNoise', 'Wrong pixels in a plain fill'],
      ['webGlBasics', 'Graphics card'],
      ['webGlExtensions', 'Abilities of the graphics card'],
      ['audio', 'A sound computed, not played'],
      ['fonts', 'Which of some known fonts are installed'],
      ['fontPreferences', 'Widths of a sample text'],
      ['mediaDevices', 'How many cameras and microphones'],
      ['voices', 'Number of speech voices'],
      ['plugins', 'Plugins'],
    ],
  },
  {
    title: 'Storage and privacy',
    components: [
      ['storage', 'Which kinds of storage work'],
      ['incognito', 'Private window'],
      ['permissions', 'Permission to notify'],
    ],
  },
  {
    title: 'Consistency',
    components: [
      ['worker', 'The same questions, asked outside the page'],
      ['lies', 'Built-in functions that were replaced'],
      ['inspected', 'Developer tools, or a program that drives the browser'],
      ['math', 'Rounding of some calculations'],
      ['evalLength', 'A detail that differs between engines'],
      ['errorFormat', 'Wording of an error'],
    ],
  },
]
