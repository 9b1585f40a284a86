// The settings of identification.

export const INGRESS_SETTINGS = [
  {
    name: 'ingress.decisionWaitMs',
    kind: 'integer',
    standard: 2_000,
    min: 10,
    max: 60_000,
    alias: 'DECISION_WAIT_MS',
    sentence: 'How long a client waits for its decision before it gets 202.',
  },
  {
    name: 'ingress.pendingMax',
    kind: 'integer',
    standard: 50_000,
    min: 1,
    max: 10_000_000,
    sentence: 'Accepted and undecided identifications beyond which new ones are refused.',
  },
  {
    name: 'ingress.perIpPerSecondMax',
    kind: 'integer',
    standard: 0,
    min: 0,
    max: 1_000_000,
    sentence: 'Identifications per second and client address beyond which 429 is answered; 0: any number.',
  },
  {
    name: 'ingress.perWorkspacePerSecondMax',
    kind: 'integer',
    standard: 0,
    min: 0,
    max: 1_000_000,
    sentence: 'Identifications per second and workspace beyond which 429 is answered; 0: any number.',
  },
  {
    name: 'ingress.cookieDomain',
    kind: 'text',
    standard: '',
    sentence: 'Domain of the first-party cookie, such as example.com; empty: the host that answers, and no other.',
  },
] as const
