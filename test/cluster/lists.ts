// Lists in a cluster: what one process changes every engine decides by, what rules put on them comes once whichever engine dies,
// and what expires leaves.

import type { Test } from 'tap'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import type { Deployed } from './deployed.ts'

/** Longer than the test. */
const LONG_SECONDS = 3_600
const LANES = 4
const SENT_MIN = 10

export async function openLists(deployed: Deployed) {
  const { first: ingress, api } = await deployed.openWorkspace('lists')
  let made = 0
  /** Each comes from another device, so that all partitions are asked. */
  const visit = (tag: object) =>
    ingress.identify({ ...browserBody(`GPU ${++made}`), userAgent: CHROME, tag }).catch(() => null)
  const call = async (method: string, path: string, body: unknown) => {
    const answer = await api.send(method, path, { body })
    if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`)
    return answer.body
  }
  const make = async (name: string, type: string): Promise<string> =>
    (await call('POST', '/v1/lists', { name, type })).id as string
  const makeRule = (rules: readonly object[], sideEffects: readonly object[] = [], verdict = 'block') =>
    call('POST', '/v1/rules', {
      name: 'r',
      conditions: { operator: 'AND', rules },
      action: { verdict, sideEffects },
      status: 'live',
    })

  return {
    async changes(t: Test): Promise<void> {
      const id = await make('blocked', 'ip')
      await makeRule([{ field: 'tag.ip', operator: 'in', value: 'blocked' }])
      const verdicts = async (ip: string) => {
        const answers = await Promise.all(Array.from({ length: 8 }, () => visit({ ip })))
        return [...new Set(answers.map((answer) => answer?.body.verdict))].sort().join()
      }
      const becomes = async (ip: string, verdict: string, why: string) =>
        t.equal(
          await eventually(
            () => verdicts(ip),
            (seen) => seen === verdict,
          ),
          verdict,
          why,
        )
      const change = (body: object) => call('PATCH', `/v1/lists/${id}/entries`, body)
      await becomes('10.1.2.3', 'allow', 'before')
      await change({ add: ['10.0.0.0/8'] })
      await becomes('10.1.2.3', 'block', 'added')
      await change({ add: [{ value: '192.0.2.7', ttl: LONG_SECONDS }] })
      await becomes('192.0.2.7', 'block', 'added for a while')
      await change({ add: [{ value: '192.0.2.7', ttl: 1 }] })
      await becomes('192.0.2.7', 'allow', 'its time is over')
      const count = async () => (await api.get(`/v1/lists/${id}`)).body.entryCount
      t.equal(await eventually(count, (entries) => entries === 1), 1, 'it left the list')
      await change({ remove: ['10.0.0.0/8'] })
      await becomes('10.1.2.3', 'allow', 'removed')
    },

    /**
     * Lets visits put values on a list. Gives what of those that were answered is missing on it in the end, and what waits
     * until more were answered.
     */
    async beginAdding(): Promise<readonly [missing: () => Promise<string[]>, goneOn: () => Promise<void>]> {
      const id = await make('seen', 'email')
      const add = { type: 'addToList', list: 'seen', value: 'tag.mail' }
      await makeRule([{ field: 'tag.mail', operator: 'exists', value: true }], [add], 'allow')
      const sent: string[] = []
      let isOver = false
      const sending = Array.from({ length: LANES }, async (_, lane) => {
        for (let i = 0; !isOver; i++) {
          const mail = `${lane}.${i}@b.example`
          const answer = await visit({ mail })
          if (answer?.status === 200 || answer?.status === 202) sent.push(mail)
        }
      })
      async function goneOn(): Promise<void> {
        const begun = sent.length
        const count = await eventually(
          async () => sent.length,
          (now) => now > begun + SENT_MIN,
        )
        if (count <= begun + SENT_MIN) throw new Error(`only ${count - begun} more visits were answered`)
      }
      async function missing(): Promise<string[]> {
        const listed: string[] = []
        for (let cursor: string | null = ''; cursor !== null; ) {
          const query: string = cursor === '' ? '' : `&cursor=${cursor}`
          const { body } = await api.get(`/v1/lists/${id}/entries?limit=100${query}`)
          for (const { value } of body.data) listed.push(value)
          cursor = body.nextCursor
        }
        const values = new Set(listed)
        const doubled = listed.length - values.size
        if (doubled > 0) throw new Error(`${doubled} values are on the list twice`)
        return sent.filter((mail) => !values.has(mail))
      }
      await goneOn()
      return [
        async () => {
          isOver = true
          await Promise.all(sending)
          return eventually(missing, (mails) => mails.length === 0)
        },
        goneOn,
      ]
    },
  }
}
