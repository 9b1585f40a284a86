// The files of deploy/ as the tests read them.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readYaml, type Yaml, type YamlMap } from './yaml.ts'

export const root = new URL('../../../', import.meta.url).pathname

export const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** Every file below `path`, as paths from the root of the repository. */
export function filesUnder(path: string): string[] {
  if (!statSync(join(root, path)).isDirectory()) return [path]
  return readdirSync(join(root, path)).flatMap((name) => filesUnder(join(path, name)))
}

export function asMap(value: Yaml | undefined, what: string): YamlMap {
  if (typeof value !== 'object' || Array.isArray(value)) throw new Error(`${what} is no map`)
  return value as YamlMap
}

export function asList(value: Yaml | undefined, what: string): readonly string[] {
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) throw new Error(`${what} is no list`)
  return value
}

export function asText(value: Yaml | undefined, what: string): string {
  if (typeof value !== 'string') throw new Error(`${what} is no text`)
  return value
}

export const compose = readYaml(read('deploy/compose.yml'))

export const services = Object.entries(asMap(compose.services, 'services')).map(([name, value]) => ({
  name,
  service: asMap(value, name),
}))

/** One process on one machine. */
export const single = readYaml(read('deploy/compose.single.yml'))

/** Those that run Fingerpost. */
export const processes = services.filter(({ service }) => 'build' in service)

export const environmentOf = (service: YamlMap): Record<string, string> =>
  Object.fromEntries(
    Object.entries(asMap(service.environment, 'environment')).map(([name, value]) => [name, asText(value, name)]),
  )
