// Which environment variables Kubernetes puts into a container, beside settings of the same prefix.

const SERVICE_LINK =
  /_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/

/** Kubernetes tells every container of each Service, under the Service's name: `…_PORT` holds an address then, not a number. */
export const isServiceLink = (variable: string, value: string): boolean =>
  SERVICE_LINK.test(variable) || (variable.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value))
