// What the Redis client does to all strings of a thread, and that it is undone: seen by V8's own eyes, in a process of its own.

import { execFileSync } from 'node:child_process'
import t from 'tap'

const built = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)
const IS_LAID_OUT = '%HasFastProperties(String.prototype)'

function tell(script: string): unknown {
  const args = ['--allow-natives-syntax', '--input-type=module', '--eval', script]
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', cwd: new URL('.', import.meta.url) }))
}

t.test('a class that extends String leaves strings a hash table until they are laid out again', async (t) => {
  const script = `
    import { layOutStrings } from ${built('lib/fast-strings.js')}
    const told = [${IS_LAID_OUT}]
    class Named extends String {}
    told.push(${IS_LAID_OUT})
    layOutStrings()
    told.push(${IS_LAID_OUT})
    console.log(JSON.stringify(told))`
  t.same(tell(script), [true, false, true])
})

t.test('a thread that has connected to Redis, or could not, has fast strings', async (t) => {
  const script = `
    import { systemClock } from ${built('lib/clock.js')}
    import { connectRedis } from ${built('lib/redis.js')}
    const config = { url: 'redis://127.0.0.1:1', name: 'test', clock: systemClock }
    const failure = await connectRedis(config).then(() => null, String)
    console.log(JSON.stringify([failure !== null, ${IS_LAID_OUT}]))
    process.exit()`
  t.same(tell(script), [true, true])
})
