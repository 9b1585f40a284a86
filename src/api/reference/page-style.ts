// The looks of the reference, in light and dark.

export const STYLE = `
:root{color-scheme:light dark;--page:#f5f6f4;--card:#fff;--ink:#17211f;--quiet:#5a6664;--line:#dfe4e1;--accent:#0b6b5c;--code:#f0f3f1;--name:#0b6b5c;--text:#8a5200;--literal:#2456a6;--get:#2456a6;--post:#0b6b5c;--put:#8a5200;--del:#a32626;--sans:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;--mono:ui-monospace,"SF Mono","Cascadia Code","Roboto Mono",Menlo,Consolas,monospace}
@media (prefers-color-scheme:dark){:root{--page:#101514;--card:#182020;--ink:#e8eeec;--quiet:#9fb0ac;--line:#2b3735;--accent:#4fc3ad;--code:#131b1a;--name:#6fd6c2;--text:#f0bd6b;--literal:#9cc0ff;--get:#9cc0ff;--post:#6fd6c2;--put:#f0bd6b;--del:#ff9d9d}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.55 var(--sans);display:grid;grid-template-columns:17.5rem minmax(0,1fr)}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
a:focus-visible,summary:focus-visible,pre:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:3px}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:1rem;background:var(--card);padding:.5rem 1rem;z-index:1}
nav{position:sticky;top:0;height:100vh;overflow-y:auto;border-right:1px solid var(--line);background:var(--card);padding:1.25rem 1rem 3rem;font-size:13.5px}
nav ul{list-style:none;margin:0;padding:0}nav>ul>li{margin-top:.75rem}nav>ul>li>a{font-weight:600;color:var(--ink)}
nav li li a{display:flex;gap:.45rem;align-items:baseline;color:var(--quiet);padding:.13rem 0;overflow-wrap:anywhere}
.brand{font-size:1.15rem;font-weight:700;margin:0}.brand span{font-size:.75rem;font-weight:500;color:var(--quiet)}
.files{margin:.25rem 0 1rem}.files a{margin-right:.75rem}
main{padding:2rem clamp(1rem,3vw,3rem) 6rem;max-width:92rem;min-width:0}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 1rem;letter-spacing:-.01em}
h2{font-size:1.4rem;margin:3rem 0 .75rem;padding-top:.75rem;border-top:1px solid var(--line)}
h3{font-size:1.08rem;margin:0 0 .25rem}h4{font-size:.8rem;text-transform:uppercase;letter-spacing:.05em;color:var(--quiet);margin:1.25rem 0 .35rem}
p{margin:.5rem 0}.part>p{max-width:48rem}.part>h3{margin-top:1.5rem}
code{font:.88em/1.45 var(--mono);overflow-wrap:anywhere}
p code,td code,dt code,.bounds code{background:var(--code);border:1px solid var(--line);border-radius:4px;padding:.05em .3em}
.scopes{display:flex;flex-wrap:wrap;gap:.35rem}
.endpoint,.schema{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1.25rem 1.4rem;margin:1.1rem 0}
.columns{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,30rem);gap:1.75rem;align-items:start}
.samples{display:grid;gap:.8rem;min-width:0}
.route{margin:.1rem 0 .6rem;display:flex;gap:.5rem;align-items:baseline}.route code{font-size:.95em;background:none;border:0;padding:0}.route var{color:var(--accent);font-style:normal}
.method{font:700 10.5px/1 var(--mono);letter-spacing:.03em;min-width:2.7rem;display:inline-block}
.method.get{color:var(--get)}.method.post{color:var(--post)}.method.put,.method.patch{color:var(--put)}.method.delete{color:var(--del)}
.access,.bounds{color:var(--quiet);font-size:.92em}
dl.members{margin:0;border-top:1px solid var(--line)}
.member{border-bottom:1px solid var(--line);padding:.5rem 0}.member dt{display:flex;flex-wrap:wrap;gap:.5rem;align-items:baseline}.member dd{margin:0}.member p{margin:.15rem 0}
.kind{color:var(--quiet);font-size:.88em}.required{color:var(--del);font-size:.75em;font-weight:600}
details{margin:.35rem 0}summary{cursor:pointer;color:var(--quiet);font-size:.9em}
details dl.members,.either{margin:.35rem 0 .35rem .9rem}
.status{font-family:var(--mono)}.answer{margin:.4rem 0}
table{border-collapse:collapse;width:100%;max-width:60rem;font-size:.94em}th{text-align:left;color:var(--quiet);font-size:.85em}th,td{border-bottom:1px solid var(--line);padding:.4rem .75rem .4rem 0;vertical-align:top}
figure.code{margin:0;border:1px solid var(--line);border-radius:8px;overflow:hidden;background:var(--code)}
figcaption{font-size:.75rem;font-weight:600;color:var(--quiet);padding:.45rem .8rem;border-bottom:1px solid var(--line)}
pre{margin:0;padding:.75rem .8rem;overflow:auto;max-height:34rem;font-size:13px;line-height:1.5}pre code{overflow-wrap:normal}
i{font-style:normal}i.n{color:var(--name)}i.s{color:var(--text)}i.l{color:var(--literal)}
tr:target td,section:target>h3{color:var(--accent)}
@media (max-width:72rem){.columns{grid-template-columns:minmax(0,1fr)}}
@media (max-width:48rem){body{display:block}nav{position:static;height:auto;max-height:50vh;border-right:0;border-bottom:1px solid var(--line)}main{padding-top:1.25rem}.endpoint,.schema{padding:1rem}}
@media print{nav{display:none}body{display:block}}
`
