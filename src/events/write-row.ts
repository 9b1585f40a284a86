// A row as it is written: the cells of an event one after the other, straight into the buffer of rows.

import type { RuleMatch, StoredEvent } from '../domain/event.ts'
import { putAscii, putCell, putCount, putText, putWithin } from '../lib/json-lines.ts'
import { degrees, tagText, writeVelocity } from './cells.ts'
import { writeDetail } from './detail.ts'
import { urlParts } from './url.ts'

const scaled = (x: number, by: number): number => Math.round(x * by)

const putMaybe = (text: string | null): void => putCell(text === null ? '' : text)

const putFlag = (flag: boolean): void => putAscii(flag ? ',true' : ',false')

function putList(texts: readonly string[]): void {
  putAscii(',[')
  for (let i = 0; i < texts.length; i++) {
    if (i > 0) putAscii(',')
    putText(texts[i] as string)
  }
  putAscii(']')
}

/** One after the other in the order of COLUMNS, and a newline. */
export function writeRow(e: StoredEvent, logPartition: number, logSeq: number): void {
  const { device, signals, scores, ip, matchedRule, matchedRules } = e
  putAscii('[')
  putText(e.workspace)
  putCell(e.env)
  putCount(e.timestamp)
  putCell(e.requestId)
  putCell(e.visitorId)
  putFlag(e.visitorFound)
  putCount(e.firstSeenAt)
  putCount(e.lastSeenAt)
  putCount(scaled(e.confidence, 10_000))
  putCell(device.platform)
  putMaybe(device.osVersion)
  putCell(device.browser)
  putMaybe(device.browserVersion)
  putMaybe(device.gpu)
  putCell(device.type)
  putMaybe(device.model)
  putMaybe(device.appVersion)
  putMaybe(device.language)
  putMaybe(device.timezone)
  putCount(device.screen === null ? 0 : device.screen.w)
  putCount(device.screen === null ? 0 : device.screen.h)
  putFlag(signals.bot.state === 'detected')
  putFlag(signals.vpn.state === 'detected')
  putFlag(signals.incognito.state === 'detected')
  putFlag(signals.tampered.state === 'detected')
  putFlag(signals.emulator.state === 'detected')
  putFlag(signals.proxy.state === 'detected')
  putFlag(signals.tor.state === 'detected')
  putFlag(signals.rootedDevice.state === 'detected')
  putFlag(signals.clonedApp.state === 'detected')
  putMaybe(signals.vpnProvider)
  putMaybe(signals.botType)
  putCount(scaled(scores.abuse, 10_000))
  putCount(scaled(scores.ato, 10_000))
  putCount(scaled(scores.bot, 10_000))
  putCount(scaled(scores.suspect, 100))
  putCell(ip.address)
  putMaybe(ip.city)
  putMaybe(ip.region)
  putMaybe(ip.country)
  putFlag(ip.lat !== null && ip.lng !== null)
  putCount(degrees(ip.lat ?? 0))
  putCount(degrees(ip.lng ?? 0))
  putMaybe(ip.timezone)
  putCount(ip.asn ?? 0)
  putMaybe(ip.asnName)
  putFlag(ip.datacenter)
  putFlag(ip.blocklisted)
  putList(ip.blocklists)
  putCell(e.verdict ?? 'none')
  putMaybe(e.challengeType)
  putCell(matchedRule === null ? '' : matchedRule.id)
  putCell(matchedRule === null ? '' : matchedRule.name)
  putCount(matchedRule === null ? 0 : matchedRule.priority)
  putAscii(',[')
  for (let i = 0; i < matchedRules.length; i++) {
    if (i > 0) putAscii(',')
    putText((matchedRules[i] as RuleMatch).id)
  }
  putAscii(']')
  putCount(e.rulesRevision)
  putMaybe(e.linkedId)
  putMaybe(e.email)
  putCell(e.label ?? 'none')
  putAscii(',"')
  putWithin(tagText(e.tag))
  putAscii('"')
  putMaybe(e.url)
  const { host, path } = urlParts(e.url)
  putMaybe(host)
  putMaybe(path)
  putCount(e.visitor.totalVisits)
  putCount(e.visitor.linkedAccounts)
  putCell(e.identity.method)
  putCount(e.identity.anonymitySet)
  putCount(e.identity.candidates)
  writeVelocity(e.velocity)
  putMaybe(e.evaluationError)
  putAscii(',"')
  writeDetail(e)
  putAscii('"')
  putCount(logPartition)
  putCount(logSeq)
  putAscii(']\n')
}
