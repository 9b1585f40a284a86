// Texts and JSON values that break careless programs, made by small functions so that each family is visible as such.

const named = (list: string): string[] => list.split('\n').filter((line) => line !== '')
const code = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `a${String.fromCharCode(from + i)}b`)

const controls = (): string[] => [...code(0x00, 0x1f), ...code(0x7f, 0x9f)]

const lineBreaks = (): string[] =>
  [
    '\r\n',
    '\n',
    '\r',
    '\u0085',
    '\u2028',
    '\u2029',
    '\r\nSet-Cookie: a=b',
    '\n{"level":"error","msg":"forged"}',
    '\r\n\r\nGET / HTTP/1.1',
  ].map((s) => `x${s}y`)

const ansi = (): string[] => [
  '\u001b[31mred',
  '\u001b]0;title\u0007',
  '\u001b[2J',
  '\u009b31m',
  '\u001b[8mhidden\u001b[0m',
  '\b\b\bx',
  '\u0007bell',
]

const surrogates = (): string[] => [
  '\ud800',
  '\udc00',
  'a\ud83d',
  '\ude00b',
  '\ud83d\ud83d\ude00',
  '\udfff\ud800',
  '\udbff',
  '💡'.repeat(200),
  `${'x'.repeat(255)}💡`,
  `${'x'.repeat(63)}💡`,
]

const unicode = (): string[] => [
  '\u202egnp.exe',
  '\u200b\u200c\u200d\u2060\ufeff',
  '\u2066x\u2069',
  'e\u0301'.repeat(50),
  `Z${'\u0351'.repeat(200)}`,
  '\ufffd\ufffe\uffff',
  '\u{10ffff}\u{1fffe}',
  'ﷺ'.repeat(80),
  'İıſßK',
  'ﬀﬁ',
  '田中さん 社會科學院 찦차',
  'العربية עברית',
  '👩‍👩‍👧‍👦🏳️‍🌈👍🏿',
  '\u00a0\u2003\u3000',
  'ªº¹²³½',
  '\u0000',
  'a\u0000b\u0000',
  '\ufeff{}',
  'A\u030a\u0327',
  'раураl.example',
]

const sql = (): string[] =>
  named(`' OR '1'='1
'; DROP TABLE events; --
") UNION SELECT * FROM system.users --
1; SELECT sleep(3)
\\'
\\\\'
{p:String}
{workspace:String}
{id:Identifier}
' FORMAT JSON SETTINGS readonly=0 --
%' OR 1=1
100%
_
\\_
[^a]
/* comment */
-- comment
# comment
0x27
\`events\`
"events"
$1
:id
@id
INSERT INTO events VALUES (1)
'\\'''''
\\N
\\0
NULL
['a','b']
(1,2)
file('/etc/passwd')
url('http://169.254.169.254/')
remote('127.0.0.1', system.one)`)

const scripts = (): string[] =>
  named(`<script>alert(1)</script>
"><img src=x onerror=alert(1)>
javascript:alert(1)
</title><svg onload=alert(1)>
{{7*7}}
{{constructor.constructor('return 1')()}}
\${7*7}
#{7*7}
<%= 7*7 %>
{{linkedId}}
{{email}}
{{ip.address}}
{{__proto__.x}}
$(id)
\`id\`
; cat /etc/passwd
| ls
&& reboot
../../../../etc/passwd
..\\..\\windows\\win.ini
file:///etc/passwd
http://169.254.169.254/latest/meta-data/
gopher://127.0.0.1:6379/_FLUSHALL
=cmd|'/C calc'!A0
+1+1
-1+1
@SUM(1,1)
<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>
<![CDATA[x]]>
%s%n%x%d
%00
%0d%0a
%c0%ae%c0%ae/
&#x3c;
\\u0000
\\x00
\\ud800
eval("1")
require('fs')
process.env
import('fs')
new Function('return 1')()
\${jndi:ldap://127.0.0.1/a}
() { :; }; echo x
*)(uid=*))(|(uid=*
' || '1'=='1
{"$gt":""}
{"$where":"sleep(1)"}
a:b
st_AAAA
pv_AAAAAAAAAAAAAAAAAAAA
req_00000000000000000000000000
sk_live_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
Bearer x
null
undefined
true
false
NaN
Infinity
-Infinity
[object Object]
None
nil
none
unknown
all
*`)

const members = (): string[] =>
  named(`__proto__
constructor
constructor.prototype
prototype
toString
valueOf
hasOwnProperty
isPrototypeOf
toJSON
then
length
name
arguments
caller
__defineGetter__
__lookupSetter__
$ref
$schema
$id
a.b.c
a[0]
a/b~1c~0d
.
..
-0
0
00
01
-1`)

const numbers = (): string[] =>
  named(`1e400
-1e400
1e-400
9007199254740993
9223372036854775808
18446744073709551616
340282366920938463463374607431768211456
0.1
0.30000000000000004
1.7976931348623157e308
5e-324
0b1
0o7
0x1F
1_000
1,000
１２３
٣
+1
1.
.5
--1
1e
Ⅷ`).concat('9'.repeat(250), `0.${'1'.repeat(240)}`)

const addresses = (): string[] =>
  named(`127.0.0.1
0.0.0.0
255.255.255.255
256.1.1.1
1.2.3
1.2.3.4.5
01.02.03.04
0x7f.1
2130706433
1.2.3.4 
1.2.3.4:80
::
::1
::ffff:1.2.3.4
::ffff:0102:0304
::1.2.3.4
64:ff9b::1.2.3.4
2002:7f00:1::
fe80::1%eth0
fe80::1%25eth0
[::1]
2001:db8::1::2
1:2:3:4:5:6:7:8:9
:::
g::1
2001:DB8::A
2001:0db8:0000:0000:0000:0000:0000:0001
1.2.3.4/32
::/0
localhost
203.0.113.9,10.0.0.1
unknown
_hidden`)

const dates = (): string[] =>
  named(`0000-01-01T00:00:00Z
0001-01-01T00:00:00Z
1970-01-01T00:00:00Z
1969-12-31T23:59:59.999Z
9999-12-31T23:59:59.999Z
10000-01-01T00:00:00Z
+275760-09-13T00:00:00Z
2016-12-31T23:59:60Z
2026-02-29T00:00:00Z
2026-02-30T00:00:00Z
2026-13-01T00:00:00Z
2026-11-01T24:00:00Z
2026-11-01T10:00:00
2026-11-01
2026-11-01 10:00:00Z
2026-11-01T10:00:00+24:00
2026-11-01T10:00:00-23:59
2026-11-01T10:00:00.123456789Z
2026-11-01T10:00:00.Z
20261101T100000Z
2026-W45-1T00:00:00Z
1762000000
1762000000000
now
Sat, 01 Nov 2025 10:00:00 GMT
2026-11-01T10:00:00z
2026-11-01t10:00:00Z`)

const emails = (): string[] =>
  named(`a@b
"quoted space"@b.example
a@[127.0.0.1]
a@b@c
@b.example
a@
a+tag@b.example
a%40b@c.example
a@b.example\\r\\nBcc: x@y
a@xn--bcher-kva.example
ü@bücher.example
.a.@b..example
a@-b.example
a@b.example.
<a@b.example>
mailto:a@b.example`)

const agents = (): string[] =>
  named(`Mozilla/5.0 (
Mozilla/5.0 (((((((((((((((((((((((((((((((((((((((
Chrome/
Chrome/99999999999999999999
Chrome/-1
Chrome/1e9 Safari/NaN
Firefox/999999.0 Gecko/0
Version/ Safari/
Mozilla/5.0 (Windows NT 99.99; Win64; x64) Chrome/0.0.0.0
Mozilla/5.0 (iPhone; CPU iPhone OS 999_999_999 like Mac OS X)
Mozilla/5.0 (Linux; Android 9999999999999999; \u0000 Build/X)
Opera/9.80 () Presto/ Version/
curl/8.0
python-requests/2
ANGLE (, , )
ANGLE (NVIDIA
ANGLE ((((
Google Inc. (
"Chromium";v="99999999999", "
"Chromium";v="`).concat(`Mozilla/5.0 (${' ;'.repeat(900)})`, `Chrome/${'1.'.repeat(900)}`, 'Mozilla '.repeat(250))

const sizes = (): string[] =>
  [63, 64, 65, 255, 256, 257, 511, 512, 513, 1_023, 2_047, 2_048, 2_049].map((n) => 'x'.repeat(n))
const patterns = (): string[] => [
  `${'a'.repeat(40)}!`,
  `${'('.repeat(200)}`,
  `${'[a-z]*'.repeat(60)}$`,
  ' '.repeat(300),
  '/'.repeat(300),
  '.'.repeat(300),
  '\\'.repeat(300),
  '"'.repeat(300),
  '%'.repeat(300),
]
const empties = (): string[] => [
  '',
  ' ',
  '\t',
  '\u00a0',
  '\u200b',
  '""',
  "''",
  '{}',
  '[]',
  '[[]]',
  '{"a":1}',
  '[1,2',
  '{"a"',
]

/** Texts. Each is a legal JavaScript string; some hold halves of surrogate pairs. */
export const TEXTS: readonly string[] = [
  ...controls(),
  ...lineBreaks(),
  ...ansi(),
  ...surrogates(),
  ...unicode(),
  ...sql(),
  ...scripts(),
  ...members(),
  ...numbers(),
  ...addresses(),
  ...dates(),
  ...emails(),
  ...agents(),
  ...sizes(),
  ...patterns(),
  ...empties(),
]

const nest = (depth: number, open: string, inner: string, close: string) =>
  open.repeat(depth) + inner + close.repeat(depth)
const keys = (n: number) => `{${Array.from({ length: n }, (_, i) => `"k${i}":${i}`).join()}}`

/** JSON values as text, since some say more than a parsed value can. */
export const VALUES: readonly string[] = [
  ...[
    'null',
    'true',
    'false',
    '0',
    '-0',
    '-1',
    '0.5',
    '1e400',
    '-1e400',
    '1e-400',
    '1E+2',
    '9007199254740993',
    '1.7976931348623157e308',
  ],
  ...[
    '4294967296',
    '65536',
    '32768',
    '-32769',
    '2147483648',
    '9223372036854775808',
    '3.0000000000000004',
    '9'.repeat(3_000),
    `0.${'0'.repeat(3_000)}1`,
  ],
  ...[
    '""',
    '" "',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u2028"',
    '"\\/"',
    `"${'x'.repeat(30_000)}"`,
    `"${'💡'.repeat(3_000)}"`,
  ],
  ...[
    '[]',
    '{}',
    '[[]]',
    '[null]',
    '[{}]',
    '[[null]]',
    '[1,"a",null,{},[]]',
    '["\\ud800"]',
    '[1e400]',
    '[-1,-1]',
    '[0,0]',
    '[99999,99999]',
    '[1.5,2.5]',
  ],
  ...[`[${'0,'.repeat(8_000)}0]`, `[${'[],'.repeat(5_000)}[]]`, `[${'"a",'.repeat(6_000)}"a"]`, keys(3_000)],
  ...[
    '{"__proto__":{"polluted":true}}',
    '{"constructor":{"prototype":{"polluted":true}}}',
    '{"__proto__":null}',
    '{"toString":1,"valueOf":1,"hasOwnProperty":1}',
  ],
  ...[
    '{"toJSON":"x"}',
    '{"then":1}',
    '{"length":1e9}',
    '{"length":-1,"0":"a"}',
    '{"":""}',
    '{"a":1,"a":2}',
    '{"\\u0000":1}',
    '{"\\ud800":1}',
    '{"a.b":{"c":1}}',
  ],
  ...[
    '{"value":1}',
    '{"value":{"value":1}}',
    '{"error":{}}',
    '{"bot":true,"botKind":"\\u001b[31m"}',
    '{"platform":[],"model":{},"mobile":"x"}',
  ],
  ...[
    '{"rendererUnmasked":"\\ud83d"}',
    '{"rendererUnmasked":7}',
    '{"fullVersionList":[{"brand":"Chromium","version":"-1"},null,1]}',
    '{"languages":[[["a"]]],"userAgent":{}}',
  ],
  nest(20, '[', '', ']'),
  nest(20, '{"a":', '1', '}'),
  nest(27, '[', '', ']'),
  nest(33, '[', '', ']'),
  nest(1_000, '{"a":', '1', '}'),
  nest(15_000, '[', '', ']'),
]
