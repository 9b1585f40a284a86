// What an app on a phone says of itself: the `native` block of an identify request. Strict, unlike `components`: a mobile SDK is
// built against it, and a misspelt member must not be lost in silence.

import { type Static, strict, Type } from './schema.ts'

const NATIVE_PLATFORMS = ['android', 'ios'] as const
const NATIVE_EVIDENCE_MAX = 8
const ATTESTATION_VERDICTS_MAX = 8

const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }))
const flag = Type.Optional(Type.Boolean())
/** Codes such as `su_binary` or `MEETS_DEVICE_INTEGRITY`: they become names in `signalDetails`. */
const code = Type.String({ pattern: '^[A-Za-z0-9_.:-]{1,64}$', maxLength: 64 })
const codes = (maxItems: number) => Type.Array(code, { maxItems })
const evidence = codes(NATIVE_EVIDENCE_MAX)
const id = Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_.:-]{8,128}$', maxLength: 128 }))

export const NativeSchema = Type.Object(
  {
    platform: Type.Unsafe<(typeof NATIVE_PLATFORMS)[number]>({ type: 'string', enum: NATIVE_PLATFORMS }),
    manufacturer: text(64),
    model: text(128),
    osVersion: text(32),
    osBuild: text(128),
    /** Package name or bundle id. */
    appId: text(255),
    appVersion: text(64),
    /** SHA-256 of the certificate the app is signed with, hexadecimal, colons allowed. */
    appSignature: Type.Optional(Type.String({ pattern: '^[0-9A-Fa-f:]{32,128}$', maxLength: 128 })),
    /** Drawn at random when the app is installed. */
    installId: id,
    /** Of the device for one vendor: ANDROID_ID, identifierForVendor. Outlives a reinstallation more often than not. */
    vendorId: id,
    rooted: flag,
    emulator: flag,
    cloned: flag,
    hooked: flag,
    /** What raised each flag. */
    evidence: Type.Optional(
      Type.Object(
        {
          rooted: Type.Optional(evidence),
          emulator: Type.Optional(evidence),
          cloned: Type.Optional(evidence),
          hooked: Type.Optional(evidence),
        },
        strict,
      ),
    ),
    /** As the platform's service gave it; whoever can forge the request can forge this as well. */
    attestation: Type.Optional(
      Type.Object(
        {
          provider: Type.Unsafe<'play_integrity' | 'app_attest' | 'device_check'>({
            type: 'string',
            enum: ['play_integrity', 'app_attest', 'device_check'],
          }),
          verdicts: codes(ATTESTATION_VERDICTS_MAX),
        },
        strict,
      ),
    ),
  },
  strict,
)

export type Native = Static<typeof NativeSchema>
