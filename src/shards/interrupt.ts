// Ends a thread that hangs. It cannot just be terminated: sockets that are open then would take the process along. So the debugger
// halts it wherever it is and has it run what runs at its end, which closes them.

import { Session } from 'node:inspector'

const ANSWER_MS = 2_000

interface Attached {
  readonly sessionId: string
  /** Its id is a number of the session's own; the thread's is in the title. */
  readonly workerInfo: { readonly title: string }
}

/** Resolves when the thread has run its handlers of `exit`, and may be terminated. Rejects when it does not answer in time. */
export function closeHanging(threadId: number): Promise<void> {
  const session = new Session()
  return new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error('the thread does not answer the debugger')), ANSWER_MS)
    let ids = 0
    let closing = 0
    function send(sessionId: string, method: string, params: object = {}): number {
      ids += 1
      const message = JSON.stringify({ id: ids, method, params })
      session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
      return ids
    }
    session.connect()
    session.on('NodeWorker.attachedToWorker', ({ params }: { params: Attached }) => {
      if (!params.workerInfo.title.startsWith(`[worker ${threadId}]`)) return
      send(params.sessionId, 'Debugger.enable')
      send(params.sessionId, 'Debugger.pause')
    })
    session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
      const { sessionId, message } = params
      const { id, method, params: details, result } = JSON.parse(message)
      if (method === 'Debugger.paused') {
        const [{ callFrameId }] = details.callFrames
        // Functions of Node's own hide the name `process`.
        const expression = `globalThis.process.emit('exit', 1)`
        closing = send(sessionId, 'Debugger.evaluateOnCallFrame', { callFrameId, expression })
      } else if (closing > 0 && id === closing) {
        clearTimeout(late)
        send(sessionId, 'Debugger.resume')
        if (result?.exceptionDetails === undefined) resolve()
        else reject(new Error(`the thread could not close: ${result.exceptionDetails.text}`))
      }
    })
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, (error) => {
      if (error) reject(error)
    })
  }).finally(() => session.disconnect())
}
