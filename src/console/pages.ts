// Every page with its address, and which of them stand in the rail.

import { later } from './lib/later.tsx'

export const CONSOLE_ROUTES = [
  { path: '/', Page: later(async () => (await import('./pages/overview/overview.tsx')).Overview) },
  { path: '/events', Page: later(async () => (await import('./pages/events/events.tsx')).Events) },
  { path: '/events/:id', Page: later(async () => (await import('./pages/events/event.tsx')).EventPage) },
  { path: '/review', Page: later(async () => (await import('./pages/review/review.tsx')).Review) },
  { path: '/visitors', Page: later(async () => (await import('./pages/visitors/visitors.tsx')).Visitors) },
  { path: '/visitors/:id', Page: later(async () => (await import('./pages/visitors/visitor.tsx')).VisitorPage) },
  { path: '/rules', Page: later(async () => (await import('./pages/rules/rules.tsx')).Rules) },
  { path: '/rules/new', Page: later(async () => (await import('./pages/rules/rule.tsx')).NewRule) },
  { path: '/rules/:id', Page: later(async () => (await import('./pages/rules/rule.tsx')).RulePage) },
  { path: '/lists', Page: later(async () => (await import('./pages/lists/lists.tsx')).Lists) },
  { path: '/lists/:id', Page: later(async () => (await import('./pages/lists/list.tsx')).ListPage) },
  { path: '/webhooks', Page: later(async () => (await import('./pages/webhooks/webhooks.tsx')).Webhooks) },
  { path: '/webhooks/:id', Page: later(async () => (await import('./pages/webhooks/webhook.tsx')).WebhookPage) },
  { path: '/analytics', Page: later(async () => (await import('./pages/analytics/analytics.tsx')).AnalyticsPage) },
  { path: '/alerts', Page: later(async () => (await import('./pages/alerts/alerts.tsx')).Alerts) },
  { path: '/alerts/:id', Page: later(async () => (await import('./pages/alerts/alert.tsx')).AlertPage) },
  { path: '/settings', Page: later(async () => (await import('./pages/settings/settings.tsx')).Settings) },
  { path: '/system', Page: later(async () => (await import('./pages/system/system.tsx')).System) },
] as const

export const RAIL = [
  ['/', 'Overview'],
  ['/events', 'Events'],
  ['/review', 'Review'],
  ['/visitors', 'Visitors'],
  ['/rules', 'Rules'],
  ['/lists', 'Lists'],
  ['/webhooks', 'Webhooks'],
  ['/analytics', 'Analytics'],
  ['/alerts', 'Alerts'],
  ['/settings', 'Settings'],
  ['/system', 'System'],
] as const
