// Addresses of workers and text of frames on pages with trusted types: the policy `fingerpost`, which the site's `trusted-types` names.

type Rules = { createScriptURL(url: string): string; createHTML(html: string): string }
type Policy = { createScriptURL(url: string): unknown; createHTML(html: string): unknown }
type TrustedTypes = { createPolicy(name: string, rules: Rules): Policy }

let policy: Policy | null | undefined

/** Null where the browser knows no trusted types, or the site allows no such policy. */
function ours(): Policy | null {
  if (policy === undefined) {
    const same = (given: string) => given
    try {
      const { trustedTypes } = self as { trustedTypes?: TrustedTypes }
      policy = trustedTypes?.createPolicy('fingerpost', { createScriptURL: same, createHTML: same }) ?? null
    } catch {
      policy = null
    }
  }
  return policy
}

export const trustedUrl = (url: string): string => (ours()?.createScriptURL(url) ?? url) as string

export const trustedHtml = (html: string): string => (ours()?.createHTML(html) ?? html) as string
