# syntax=docker/dockerfile:1.7
# One role of a cluster, chosen by FINGERPOST_PROCESS_ROLES. Build it from the root of the repository:
#   docker build -f deploy/cluster.Dockerfile -t fingerpost-cluster:0.1.0 --build-arg GIT_COMMIT="$(git rev-parse HEAD)" .

# Debian 13: the official server binaries below need glibc 2.38 or newer.
ARG NODE_IMAGE=node:24.21.0-trixie-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY .scripts .scripts
COPY src src
ARG GIT_COMMIT=unknown
# Only what runs: build/server with its SQL and Lua, the SDK, and the pages of the documentation.
RUN GIT_COMMIT="$GIT_COMMIT" node .scripts/build.mjs --server

# The official uWebSockets.js is published on GitHub only. v20.69.0 runs on Node 22, 24 and 26; the digest makes the build
# stop when other bytes come from there.
FROM ${NODE_IMAGE} AS http
ADD --checksum=sha256:691f1f43cb6c4e30c56d7c11968c275130e57b52ac3327bc457c574dedc613d0 \
    https://codeload.github.com/uNetworking/uWebSockets.js/tar.gz/refs/tags/v20.69.0 /tmp/uws.tar.gz
RUN mkdir /tmp/all /uws \
 && tar -xzf /tmp/uws.tar.gz -C /tmp/all --strip-components=1 \
 && cd /tmp/all \
 && cp package.json LICENSE uws.js ESM_wrapper.mjs /uws/ \
 && cp "uws_linux_$(node -p process.arch)_$(node -p process.versions.modules).node" /uws/

FROM ${NODE_IMAGE} AS modules
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The lockfile names the build for Node 20 that npm has; here the official one takes its name.
RUN npm ci --omit=dev --ignore-scripts && rm -rf node_modules/uWebSockets.js
COPY --from=http /uws node_modules/uWebSockets.js
# Without its binary the server would not start, or serve badly: that has to show now.
RUN node --input-type=module -e "import uWS from 'uWebSockets.js'; \
  if (!Function.prototype.toString.call(uWS.App).includes('[native code]')) throw new Error('no native HTTP server')"

FROM ${NODE_IMAGE}
WORKDIR /app
ENV NODE_ENV=production
# A container is reached from outside of it. Plain HTTP stays refused until FINGERPOST_ALLOW_PLAIN_HTTP or TLS files are given.
ENV FINGERPOST_DEPLOYMENT_MODE=cluster \
    FINGERPOST_HOST=0.0.0.0 \
    FINGERPOST_PORT=8080
COPY package.json LICENSE ./
COPY config config
COPY deploy/healthcheck.mjs deploy/healthcheck.mjs
COPY --from=modules /app/node_modules node_modules
COPY --from=build /app/build build
# A volume for the master key takes its owner from here.
RUN mkdir -m 700 /keys && chown node:node /keys
USER node
EXPOSE 8080
# Liveness only: an orchestrator that restarts the unhealthy must not restart a process that waits for its NATS. One that has started
# answers meanwhile; at its start nothing listens before its servers have answered, and what fails in the start period does not count.
HEALTHCHECK --interval=10s --timeout=4s --start-period=30m CMD ["node", "deploy/healthcheck.mjs", "/healthz"]
STOPSIGNAL SIGTERM
# In exec form node is process 1 and gets the signal itself; it drains on SIGTERM and starts no processes it leaves behind.
CMD ["node", "--min-semi-space-size=8", "--max-semi-space-size=32", "build/server/main.js", "start"]
