// Writes deploy/grafana/*.json from .scripts/dashboards: `npm run dashboards`. A test holds the files to what this would write.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cluster } from './dashboards/cluster.mjs'
import { toDashboard } from './dashboards/panels.mjs'
import { pipeline } from './dashboards/pipeline.mjs'
import { service } from './dashboards/service.mjs'
import { webhooks } from './dashboards/webhooks.mjs'

const FOLDER = fileURLToPath(new URL('../deploy/grafana', import.meta.url))

/** File name and text of each dashboard. */
export const dashboards = () =>
  Object.entries({ service, pipeline, webhooks, cluster }).map(([name, dashboard]) => [
    `${name}.json`,
    `${JSON.stringify(toDashboard(dashboard), null, 2)}\n`,
  ])

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of dashboards()) writeFileSync(join(FOLDER, name), text)
}
