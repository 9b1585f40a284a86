// How long a process of a cluster may wait for its servers at its start, when nothing listens yet, before whoever probes it counts it as dead.

import t from 'tap'
import { asMap, asText, filesUnder, read } from './deploy.ts'
import { readYamlDocuments, type Yaml } from './yaml.ts'

const OUTAGE_S = 1_800

const at = (value: Yaml | undefined, path: readonly string[]): Yaml | undefined =>
  path.reduce<Yaml | undefined>((from, member) => asMap(from, member)[member], value)

t.test('Kubernetes gives a role half an hour to find its servers', async (t) => {
  const deployments = filesUnder('deploy/kubernetes/cluster')
    .flatMap((file) => readYamlDocuments(read(file)))
    .filter(({ kind }) => kind === 'Deployment')
  t.ok(deployments.length >= 5)
  for (const manifest of deployments) {
    const containers = at(manifest, ['spec', 'template', 'spec', 'containers'])
    const [container] = Array.isArray(containers) ? (containers as Yaml[]) : []
    const number = (name: string) => Number(asText(at(container, ['startupProbe', name]), name))
    t.ok(number('periodSeconds') * number('failureThreshold') >= OUTAGE_S)
  }
})

t.test('the image of a role is not unhealthy for half an hour after its start', async (t) => {
  const [, minutes] = /^HEALTHCHECK .*--start-period=(\d+)m /m.exec(read('deploy/cluster.Dockerfile')) ?? []
  t.ok(Number(minutes) * 60 >= OUTAGE_S)
})
