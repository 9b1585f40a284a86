// The package for browsers in a page that Vite built of it, with React from the registry: the hook identifies once, and again when
// it is asked to.

import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { makeProject, packAll, tarballOf } from '../helpers/packed.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'
import { makeFolder, startChromium } from './chromium.ts'

const root = new URL('../../../', import.meta.url).pathname
t.teardown(cleanUp)

const PAGE = (publicKey: string, endpoint: string) => `
import { useFingerpost } from '@fingerpost/browser/react'
import { createElement, useState } from 'react'
import { createRoot } from 'react-dom/client'
function Page() {
  const { data, error, isLoading, identify } = useFingerpost({ publicKey: '${publicKey}', endpoint: ['${endpoint}'] })
  const [renderings, setRenderings] = useState(0)
  const text = error ? error.message : isLoading ? 'loading' : data.visitorId + ' ' + data.requestId
  return createElement('div', null,
    createElement('p', { id: 'said' }, text),
    createElement('button', { id: 'render', onClick: () => setRenderings(renderings + 1) }, String(renderings)),
    createElement('button', { id: 'again', onClick: () => identify({ tag: { action: 'again' } }) }, 'again'))
}
createRoot(document.getElementById('root')).render(createElement(Page))
`

t.test(
  'the React hook identifies a real browser once, whatever is rendered, and again when it is asked to',
  async (t) => {
    packAll()
    const { server } = await openTenant()
    const project = makeProject([tarballOf('browser'), 'react', 'react-dom'], ['--prefer-offline'])
    project.write('index.html', '<div id="root"></div><script type="module" src="/page.js"></script>')
    project.write('page.js', PAGE(server.keys.testPublic, server.url))
    project.run(process.execPath, [join(root, 'node_modules/vite/bin/vite.js'), 'build', '--logLevel', 'error'])
    const pages = createServer(({ url = '/' }, response) => {
      const file = join(project.dir, 'dist', url === '/' ? 'index.html' : url)
      if (!existsSync(file)) return void response.writeHead(404).end()
      response.setHeader('Content-Type', url.endsWith('.js') ? 'text/javascript' : 'text/html').end(readFileSync(file))
    })
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve))
    t.teardown(() => pages.close())
    const profile = await makeFolder('packages')
    const chromium = await startChromium(profile.path)
    t.teardown(async () => {
      await chromium.close()
      await profile.remove()
    })
    const page = await chromium.context.newPage()
    const sent: string[] = []
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().includes('/v1/identify')) sent.push(request.url())
    })
    await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`)
    const said = async (before: string) => {
      const shown = "document.getElementById('said')?.textContent ?? 'loading'"
      await page.waitForFunction(`!['loading', '${before}'].includes(${shown})`)
      return (await page.textContent('#said')) ?? ''
    }
    const first = await said('')
    t.match(first, /^pv_\w+ req_\w+$/)
    for (let i = 0; i < 5; i++) await page.click('#render')
    t.equal(await page.textContent('#render'), '5')
    t.equal(sent.length, 1, 'rendering asks for nothing')
    await page.click('#again')
    const second = await said(first)
    t.equal(second.split(' ')[0], first.split(' ')[0], 'the same visitor')
    t.equal(sent.length, 2)
  },
)
