// The manifests of Kubernetes against the program they run: settings, probes, drain, sandbox, budgets, scaling and network policies. No
// cluster was at hand, so nothing here says that a cluster takes them.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PROCESS_ROLES, readConfig } from '../../src/config.ts'
import { scrape } from '../helpers/scrape.ts'
import { cleanUp, makeKeys, startServer } from '../helpers/server.ts'
import { asList, asMap, asText, filesUnder, processes, read, root } from './deploy.ts'
import { readYamlDocuments, type Yaml, type YamlMap } from './yaml.ts'

t.teardown(cleanUp)

const FOLDER = 'deploy/kubernetes'
const documents = filesUnder(FOLDER).flatMap((file) =>
  readYamlDocuments(read(file)).map((manifest) => ({ file, manifest })),
)
const nameOf = (manifest: YamlMap): string => asText(asMap(manifest.metadata, 'metadata').name, 'name')
const ofKind = (kind: string): YamlMap[] =>
  documents.flatMap(({ manifest }) => (manifest.kind === kind ? [manifest] : []))
const maps = (value: Yaml | undefined, what: string): YamlMap[] => {
  if (!Array.isArray(value)) throw new Error(`${what} is no list`)
  return value.map((item: Yaml) => asMap(item, what))
}
/** Follows members; the path names them with dots. */
const at = (value: Yaml | undefined, path: string): Yaml | undefined =>
  path.split('.').reduce<Yaml | undefined>((from, member) => asMap(from, path)[member], value)

const workloads = [...ofKind('Deployment'), ...ofKind('StatefulSet')].map((manifest) => {
  const pod = asMap(at(manifest, 'spec.template.spec'), 'pod')
  const [container] = maps(pod.containers, 'containers')
  if (container === undefined) throw new Error('a pod has a container')
  return {
    name: nameOf(manifest),
    manifest,
    pod,
    container,
    labels: asMap(at(manifest, 'spec.template.metadata.labels'), 'labels'),
  }
})
const roles = workloads.filter(({ manifest }) => manifest.kind === 'Deployment')

const keys = makeKeys()
/** What deploy/README.md says the secrets hold. */
const SECRETS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'fingerpost-stores': {
    FINGERPOST_NATS_PASSWORD: 'nats-secret',
    FINGERPOST_REDIS_URL: 'redis://:redis-secret@redis.redis:6379',
    FINGERPOST_CLICKHOUSE_PASSWORD: 'history-secret',
  },
  'fingerpost-keys': {
    FINGERPOST_PUBLIC_KEY: keys.public,
    FINGERPOST_SECRET_KEY: keys.secret,
    FINGERPOST_TEST_PUBLIC_KEY: keys.testPublic,
    FINGERPOST_TEST_SECRET_KEY: keys.testSecret,
    FINGERPOST_OPERATOR_TOKEN: 'x'.repeat(32),
  },
}
const settingsMap = asMap(ofKind('ConfigMap')[0]?.data, 'data') as Readonly<Record<string, string>>

function environmentOf(container: YamlMap): Record<string, string> {
  const own = maps(container.env, 'env').map((one) => [asText(one.name, 'name'), asText(one.value, 'value')] as const)
  const from = container.envFrom === undefined ? [] : maps(container.envFrom, 'envFrom')
  const given = from.map((one) =>
    'configMapRef' in one ? settingsMap : (SECRETS[asText(at(one, 'secretRef.name'), 'secret')] ?? {}),
  )
  return Object.assign({}, ...given, Object.fromEntries(own))
}
const configOf = (container: YamlMap) => readConfig(environmentOf(container))

t.test('every process accepts its settings, and together they run every role', async (t) => {
  t.ok(roles.length >= 5 && workloads.length > roles.length)
  const run = roles.flatMap(({ container }) => {
    const config = configOf(container)
    t.ok(config.isCluster)
    t.equal(config.ignored.length, 0)
    return [...config.roles]
  })
  t.same(run.sort(), [...PROCESS_ROLES].sort(), 'each by one deployment')
  for (const { name, container } of workloads.filter((one) => !roles.includes(one))) {
    t.notOk(configOf(container).isCluster, name)
  }
  for (const [name, secrets] of Object.entries(SECRETS)) {
    const [, lines = ''] = read('deploy/README.md').split(`secret generic ${name} `)
    for (const setting of Object.keys(secrets))
      t.ok(lines.slice(0, 700).includes(`${setting}=`), `${setting} of ${name}`)
  }
})

t.test('probes ask what answers, before and after a stop', async (t) => {
  for (const { name, pod, container } of workloads) {
    const ports = new Map(maps(container.ports, 'ports').map((port) => [port.name, Number(port.containerPort)]))
    const config = configOf(container)
    t.equal(ports.get('http'), config['http.port'], name)
    t.equal(ports.get('admin'), config['http.adminPort'], name)
    for (const [probe, path] of [
      ['startupProbe', '/healthz'],
      ['livenessProbe', '/healthz'],
      ['readinessProbe', '/readyz'],
    ] as const) {
      t.same(at(container, `${probe}.httpGet`), { path, port: 'http' }, `${name}: ${probe}`)
    }
    const preStop = asList(at(container, 'lifecycle.preStop.exec.command'), 'preStop')
    const stopMs = Number(pod.terminationGracePeriodSeconds) * 1_000
    const [, seconds = ''] = preStop
    // The drain, as api/listeners.ts bounds it, and a start that has to settle, with room to spare.
    t.ok(stopMs > Number(seconds) * 1_000 + Math.max(15_000, config['http.lingerMs']) + 10_000, `${name} may drain`)
  }
  const server = await startServer({ env: { FINGERPOST_ADMIN_PORT: '0' } })
  for (const path of ['/healthz', '/readyz']) t.equal((await fetch(server.url + path)).status, 200, path)
})

t.test('no process can write to its root, become somebody else, or ask Kubernetes anything', async (t) => {
  const users = filesUnder('deploy')
    .filter((file) => file.endsWith('Dockerfile'))
    .map(read)
  t.ok(users.length === 2 && users.every((text) => /^USER node$/m.test(text)), 'node is 1000 in the images of Node')
  for (const { name, pod, container } of workloads) {
    t.equal(pod.enableServiceLinks, 'false', name)
    t.equal(pod.automountServiceAccountToken, 'false', name)
    t.match(
      pod.securityContext,
      { runAsNonRoot: 'true', runAsUser: '1000', seccompProfile: { type: 'RuntimeDefault' } },
      name,
    )
    const sandbox = {
      allowPrivilegeEscalation: 'false',
      readOnlyRootFilesystem: 'true',
      capabilities: { drop: ['ALL'] },
    }
    t.same(container.securityContext, sandbox, name)
    t.ok(at(container, 'resources.requests.cpu') !== undefined, `${name} asks for cores`)
    t.ok(at(container, 'resources.limits.memory') !== undefined, `${name} has a bound of memory`)
    const mounts = maps(container.volumeMounts, 'mounts')
    const volumes = maps(pod.volumes, 'volumes').map((volume) => volume.name)
    const claims = name === 'fingerpost' ? ['data'] : []
    for (const mount of mounts) t.ok([...volumes, ...claims].includes(mount.name), `${mount.name} of ${name}`)
    const keyFile = configOf(container)['webhooks.masterKeyFile']
    if (keyFile !== '' && !configOf(container).roles.has('jobs')) {
      t.ok(
        mounts.some((mount) => keyFile.startsWith(`${mount.mountPath}/`)),
        `${name} has ${keyFile}`,
      )
    }
  }
  t.equal(at(ofKind('Namespace')[0], 'metadata.labels')?.['pod-security.kubernetes.io/enforce' as never], 'restricted')
})

t.test('every label that is asked for is one of a pod', async (t) => {
  const matches = (wanted: YamlMap) =>
    workloads.some(({ labels }) => Object.entries(wanted).every(([label, value]) => labels[label] === value))
  for (const { manifest } of documents) {
    const { kind } = manifest
    const selector =
      kind === 'Service'
        ? at(manifest, 'spec.selector')
        : ['Deployment', 'StatefulSet', 'PodDisruptionBudget'].includes(kind as string)
          ? at(manifest, 'spec.selector.matchLabels')
          : kind === 'NetworkPolicy'
            ? at(manifest, 'spec.podSelector.matchLabels')
            : undefined
    if (selector !== undefined) t.ok(matches(asMap(selector, 'selector')), `${kind} ${nameOf(manifest)}`)
  }
  const budgets = ofKind('PodDisruptionBudget').map(nameOf)
  const many = roles.map(({ name }) => name).filter((name) => name !== 'jobs')
  t.same(budgets.sort(), many.sort(), 'a budget for each role that has several pods')
  const services = ofKind('Service').map(nameOf)
  for (const rule of ofKind('Ingress').flatMap((ingress) => maps(at(ingress, 'spec.rules'), 'rules'))) {
    for (const path of maps(at(rule, 'http.paths'), 'paths'))
      t.ok(services.includes(at(path, 'backend.service.name') as string))
  }
})

t.test('paths go to the role that nginx gives them to', async (t) => {
  const [ingress] = ofKind('Ingress')
  const [rule] = maps(at(ingress, 'spec.rules'), 'rules')
  const nginx = read('deploy/nginx/fingerpost.conf')
  for (const path of maps(at(rule, 'http.paths'), 'paths')) {
    const [, where] =
      new RegExp(`location (?:=|\\^~) ${path.path}/? \\{[^}]*?proxy_pass http://fingerpost_(\\w+);`).exec(nginx) ?? []
    t.equal(at(path, 'backend.service.name'), `fingerpost-${where}`, path.path as string)
  }
})

t.test('what scales engines is measured, and no engine is without a partition', async (t) => {
  const scalers = new Map(ofKind('HorizontalPodAutoscaler').map((one) => [nameOf(one), one]))
  t.same([...scalers.keys()].sort(), ['engine', 'ingress'])
  for (const [name, scaler] of scalers) {
    t.equal(at(scaler, 'spec.scaleTargetRef.name'), name)
    t.ok(Number(at(scaler, 'spec.minReplicas')) >= 2, name)
    const deployment = roles.find((role) => role.name === name)?.manifest
    t.equal(at(deployment, 'spec.replicas'), undefined, 'a number of replicas would undo what the scaler did')
  }
  const engine = scalers.get('engine')
  const config = configOf((roles.find(({ name }) => name === 'engine') ?? roles[0])?.container as YamlMap)
  t.ok(Number(at(engine, 'spec.maxReplicas')) <= config.partitions)
  const [lag] = maps(at(engine, 'spec.metrics'), 'metrics')
  const metric = asText(at(lag, 'external.metric.name'), 'metric')
  t.ok(read(`${FOLDER}/metrics-adapter.yml`).includes(`as: ${metric}`))
  const server = await startServer()
  t.ok((await scrape(server.url)).types.has(metric), metric)
})

t.test(
  'network policies open the ports of the settings, and nothing of the private networks to the internet',
  async (t) => {
    const policies = new Map(ofKind('NetworkPolicy').map((one) => [nameOf(one), asMap(one.spec, 'spec')]))
    t.same(policies.get('nobody'), {
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'fingerpost' } },
      policyTypes: ['Ingress', 'Egress'],
    })
    const portsOf = (name: string, way: 'ingress' | 'egress') =>
      maps(policies.get(name)?.[way], name).flatMap((rule) => maps(rule.ports, 'ports').map(({ port }) => Number(port)))
    const config = configOf((roles[0] as (typeof roles)[0]).container)
    const portOf = (url: string) => Number(new URL(url).port)
    const stores = [
      ...config['nats.servers'],
      ...config['nats.monitorUrls'],
      config['redis.url'],
      config['clickhouse.url'],
    ]
    t.same(new Set(portsOf('stores', 'egress')), new Set(stores.map(portOf)))
    t.same(portsOf('ingress-from-outside', 'ingress'), [config['http.port']])
    t.same(portsOf('api-from-outside', 'ingress'), [config['http.port']])
    t.same(portsOf('metrics', 'ingress'), [config['http.adminPort']])
    for (const name of ['dispatcher-to-internet', 'api-to-internet']) {
      const [rule] = maps(policies.get(name)?.egress, name)
      const [to] = maps(rule?.to, name)
      const except = asList(at(to, 'ipBlock.except'), name)
      for (const range of ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'])
        t.ok(except.includes(range))
      t.same(portsOf(name, 'egress'), [443, config['smtp.port']])
    }
  },
)

t.test('kustomize finds every file, and the images are those of compose', async (t) => {
  const kustomization = documents.find(({ manifest }) => manifest.kind === 'Kustomization')?.manifest
  const listed = asList(kustomization?.resources, 'resources')
  const lying = filesUnder(`${FOLDER}/cluster`).map((file) => file.slice(`${FOLDER}/cluster/`.length))
  t.same([...listed].sort(), lying.filter((file) => file !== 'kustomization.yml').sort())
  for (const file of listed) t.ok(existsSync(join(root, FOLDER, 'cluster', file)))
  const [image] = maps(kustomization?.images, 'images')
  const composed = processes.map(({ service }) => service.image)
  t.ok(composed.every((name) => name === `${image?.name}:${image?.newTag}`))
  const { version } = JSON.parse(read('package.json')) as { version: string }
  t.equal(image?.newTag, version)
  for (const { name, container } of workloads) {
    t.equal(container.image, name === 'fingerpost' ? `fingerpost:${version}` : image?.name, name)
  }
})
