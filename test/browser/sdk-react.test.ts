// What the React hook shows while what it was given changes, in a real page; Preact stands in for React, whose hooks it has.

import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { build } from 'vite'
import { until } from '../helpers/processes.ts'
import { found, root } from './fake-service.ts'
import { setStage } from './scene.ts'

t.setTimeout(600_000)
const stage = setStage(t)
const PATIENCE_MS = 120_000
let script = ''

/** `show(options)` renders a component with the hook; `shown` is what it was last rendered with. The SDK is the page's own. */
const MODULES: Record<string, string> = {
  '@fingerpost/browser': 'export const { load } = window.Fingerpost',
  page: `
import { useFingerpost } from '${root.pathname}src/sdk/react.ts'
import { h, render } from 'preact'
function Hooked(options) {
  const { identify, ...shown } = useFingerpost({ publicKey: 'pk_test_x', budgetMs: 1, timeoutMs: 60000, ...options })
  Object.assign(window, { shown, identify })
  return null
}
window.show = (options) => render(h(Hooked, options), document.body)
`,
}

t.before(async () => {
  const built = await build({
    configFile: false,
    root: root.pathname,
    logLevel: 'warn',
    publicDir: false,
    resolve: { alias: { react: 'preact/hooks' } },
    build: { write: false, rolldownOptions: { input: 'page', output: { format: 'iife' } } },
    plugins: [{ name: 'page', resolveId: (id) => (id in MODULES ? id : null), load: (id) => MODULES[id] ?? null }],
  })
  const [made] = [built].flat() as { output: { code: string }[] }[]
  script = made?.output[0]?.code ?? ''
})

/** Waits until the component shows what the expression says. */
async function shows(t: Test, page: Page, expression: string): Promise<void> {
  await page.waitForFunction(`(({ data, error, isLoading }) => ${expression})(window.shown)`)
  t.pass(expression)
}

t.test('loading ends where a first identification is no longer wanted, and begins where it is again', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  await page.addScriptTag({ content: script })
  service.replies = ['hang']
  await page.evaluate('show({ immediate: true })')
  await until('the service is asked', PATIENCE_MS, () => service.bodies.length === 1)
  await shows(t, page, 'isLoading')
  await page.evaluate('show({ immediate: false })')
  await shows(t, page, '!isLoading && data === null')
  service.replies = ['hang']
  await page.evaluate('show({ immediate: true })')
  await until('the service is asked again', PATIENCE_MS, () => service.bodies.length === 2)
  await shows(t, page, 'isLoading')
})

t.test('loading ends where the service changes while it is asked, whose late answer is not shown', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  await page.addScriptTag({ content: script })
  let answer: (value?: unknown) => void = () => undefined
  const told = new Promise((resolve) => {
    answer = resolve
  })
  service.replies = [{ ...(found() as object), until: told } as never]
  await page.evaluate(`show({ immediate: false, endpoint: '${service.url}' })`)
  await page.evaluate('window.earlier = identify, window.asked = identify(), null')
  await until('the service is asked', PATIENCE_MS, () => service.bodies.length === 1)
  await shows(t, page, 'isLoading')
  await page.evaluate(`show({ immediate: false, endpoint: 'http://localhost:${service.port}' })`)
  await shows(t, page, '!isLoading && data === null')
  answer()
  await page.evaluate('asked')
  await shows(t, page, '!isLoading && data === null')
  await page.evaluate('earlier().then(() => null)')
  await shows(t, page, '!isLoading && data !== null')
})

t.test('what one service answered is not shown of another', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  await page.addScriptTag({ content: script })
  await page.evaluate('show({})')
  await shows(t, page, '!isLoading && data !== null')
  service.defaultReply = 'hang'
  await page.evaluate(`show({ publicKey: 'pk_test_y' })`)
  t.match(await page.evaluate('shown'), { data: null, isLoading: true }, 'from the first rendering on')
  await until('the other is asked', PATIENCE_MS, () => service.bodies.length === 2)
  await shows(t, page, 'isLoading && data === null')
  await page.evaluate(`show({ publicKey: 'pk_test_z', immediate: false })`)
  await shows(t, page, '!isLoading && data === null')
})
