// What a site puts into its pages, and the policy it needs for it.

/** `key` is a public key, which may stand in a page. */
export const snippetOf = (serviceUrl: string, key: string): string =>
  `<script src="${serviceUrl}/sdk.js"></script>
<script>
  const fingerpost = Fingerpost.load({ publicKey: '${key}', endpoint: '${serviceUrl}' })
  fingerpost
    .get({ linkedId: 'user_42', tag: { action: 'login' } })
    .then(({ requestId }) => console.log('hand this to your back end:', requestId))
    .catch((error) => console.warn('not identified, go on without:', error))
</script>`

export const policyOf = (serviceUrl: string): string =>
  `Content-Security-Policy: script-src 'self' ${serviceUrl}; connect-src 'self' ${serviceUrl}`
