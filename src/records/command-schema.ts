// What the schemas of commands share.

import { strict, Type } from '../domain/schema.ts'

export const id = Type.String({ pattern: '^[A-Za-z0-9_]{1,64}$', maxLength: 64 })
export const wholeNumber = Type.Integer({ minimum: 0 })
export const text = (maxLength: number) => Type.String({ maxLength })
export const byId = Type.Object({ id }, strict)
