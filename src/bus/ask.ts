// Questions to every process at once over the bus: whoever knows answers, and the asker decides when it has heard enough.

import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Bus, Unsubscribe } from './bus.ts'

export interface AskConfig {
  readonly bus: Bus
  readonly clock: Clock
  /** Of this process and no other, nor of one before it: answers are sent to it. */
  readonly id: string
  /** Questions under way; more are refused. Default 10 000. */
  readonly questionsMax?: number
  /** Told when an answer that was promised failed; one that throws at once is told to the bus. */
  readonly onError?: (error: unknown) => void
}

export interface AskOptions {
  /** Called after each answer with all so far; true ends the question. */
  readonly enough: (answers: readonly unknown[]) => boolean
  readonly timeoutMs: number
}

/** Returns the answer or a promise of it; null is none, and of a failure the asker hears nothing. */
export type Answerer = (question: unknown) => unknown

export interface Ask {
  /**
   * Resolves with the answers in the order they came, also when time is up or the port is closed: too few answers are a
   * result the caller must judge. Fails with Unavailable when too many questions are under way, and with what `enough` throws.
   */
  ask(subject: string, question: unknown, options: AskOptions): Promise<readonly unknown[]>
  /** Answers this question from any process, this one too. */
  answer(subject: string, answerer: Answerer): Unsubscribe
  close(): Promise<void>
}

interface QuestionMessage {
  readonly from: string
  readonly id: number
  readonly question: unknown
}

interface AnswerMessage {
  readonly id: number
  readonly answer: unknown
}

interface Waiting {
  hear(answer: unknown): void
  stop(): void
}

const QUESTIONS_MAX = 10_000

const questionSubject = (subject: string): string => `ask.${subject}`
const answerSubject = (id: string): string => `answer.${id}`

/** Listens for answers from the start: a server knows of it long before the first question. */
export function openAsk({ bus, clock, id: self, questionsMax = QUESTIONS_MAX, onError }: AskConfig): Ask {
  const waiting = new Map<number, Waiting>()
  let closed = false
  const unsubscribes = new Set<Unsubscribe>()
  let asked = 0

  unsubscribes.add(
    bus.subscribe(answerSubject(self), (message) => {
      const { id, answer } = message as AnswerMessage
      // Late answers find nobody.
      waiting.get(id)?.hear(answer)
    }),
  )

  return {
    async ask(subject, question, { enough, timeoutMs }) {
      if (closed) throw new Unavailable('no more questions: the process stops')
      if (waiting.size >= questionsMax) throw new Unavailable('too many questions to other processes are under way')
      asked += 1
      const id = asked
      const answers: unknown[] = []
      const done = new AbortController()
      const stop = () => done.abort()
      let failure: { readonly error: unknown } | null = null
      const hear = (answer: unknown) => {
        answers.push(answer)
        try {
          if (enough(answers)) stop()
        } catch (error) {
          failure = { error }
          stop()
        }
      }
      waiting.set(id, { hear, stop })
      const message: QuestionMessage = { from: answerSubject(self), id, question }
      bus.publish(questionSubject(subject), message)
      await clock.sleep(timeoutMs, done.signal)
      waiting.delete(id)
      if (failure !== null) throw (failure as { readonly error: unknown }).error
      return answers
    },

    answer(subject, answerer) {
      const unsubscribe = bus.subscribe(questionSubject(subject), (message) => {
        const { from, id, question } = message as QuestionMessage
        const send = (answer: unknown) => {
          if (answer === null || answer === undefined || closed) return
          bus.publish(from, { id, answer } satisfies AnswerMessage)
        }
        const answer = answerer(question)
        if (answer instanceof Promise) answer.then(send, (error: unknown) => onError?.(error))
        else send(answer)
      })
      unsubscribes.add(unsubscribe)
      return () => {
        unsubscribes.delete(unsubscribe)
        unsubscribe()
      }
    },

    async close() {
      closed = true
      for (const { stop } of waiting.values()) stop()
      for (const unsubscribe of unsubscribes) unsubscribe()
      unsubscribes.clear()
    },
  }
}
