//===- PageStyle.h - how a page looks -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Colours are told apart with any colour vision, and head kinds carry letters
// besides. k0 … k7: kinds of heads; m0 … m5: memory; o0 … o4: operations.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_REPORT_PAGESTYLE_H
#define HYBRID_LIB_REPORT_PAGESTYLE_H

namespace hybrid {

inline constexpr char pageStyle[] = R"css(
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#5c6878;--line:#dfe4ea;--well:#e9edf2;--on:#fff;
--k0:#2f6fd0;--k1:#c2570c;--k2:#0f8a6b;--k3:#8a4fc7;--k4:#b8336a;--k5:#6b7a12;--k6:#0b7f9e;--k7:#7a5a3c;
--m0:#8fa3bd;--m1:#b7a5d0;--m2:#d3bfa0;--m3:#9cc5b4;--m4:#c9ced6;--m5:#2f6fd0;
--o0:#2f6fd0;--o1:#c2570c;--o2:#0f8a6b;--o3:#8a4fc7;--o4:#6c7785}
@media(prefers-color-scheme:dark){:root{--page:#11161d;--card:#1a212b;--ink:#e6ebf2;--soft:#9aa7b8;--line:#2d3744;--well:#263040;--on:#10151c;
--k0:#7fb0ff;--k1:#ff9f5a;--k2:#4fd0ab;--k3:#c79bff;--k4:#ff8fb8;--k5:#c3d05c;--k6:#5cc8e6;--k7:#cfa982;
--m0:#5c708c;--m1:#75648f;--m2:#8d7752;--m3:#4f8471;--m4:#565f6b;--m5:#7fb0ff;
--o0:#7fb0ff;--o1:#ff9f5a;--o2:#4fd0ab;--o3:#c79bff;--o4:#97a3b2}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1280px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:18px;margin:40px 0 4px}
h3{font-size:15px;margin:0 0 8px;overflow-wrap:anywhere}
p{margin:0 0 12px;color:var(--soft);max-width:78ch}
section.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:16px}
section.one{display:grid;grid-template-columns:minmax(0,1fr);gap:16px}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:16px;min-width:0}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:0}
.facts div{background:var(--well);border-radius:8px;padding:8px 12px}
.facts dt{color:var(--soft);font-size:12.5px}
.facts dd{margin:0;font-size:19px;font-weight:600}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:18px 24px}
.pair .charts{grid-template-columns:minmax(0,1fr)}
figure{margin:0;min-width:0}
figcaption{font-size:14px;color:var(--soft);margin-bottom:6px}
figcaption b{color:var(--ink)}
svg{display:block;width:100%;height:auto}
svg text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;fill:var(--ink)}
svg .note,svg .number{fill:var(--soft)}
svg .mark{font-weight:600}
svg .end{text-anchor:end}
svg .middle,svg .letter{text-anchor:middle}
svg .letter{fill:var(--on);font-weight:700}
.stack{max-width:900px}
.well{fill:var(--well)}
.forward{fill:var(--soft);opacity:.35}
.grid{stroke:var(--line);stroke-width:1;fill:none}
.roof{stroke:var(--ink);stroke-width:2;fill:none}
.limit{stroke:var(--ink);stroke-width:1.2;stroke-dasharray:5 4;fill:none}
.peak{fill:var(--ink)}
.hover rect{fill:transparent}
.hover rect:hover{fill:var(--ink);opacity:.25}
.dots circle{fill-opacity:.28;stroke-width:1}
.dots circle:hover{fill-opacity:.9}
.legend{list-style:none;margin:0 0 14px;padding:0;display:flex;flex-wrap:wrap;gap:8px 22px;align-items:center}
.legend li{display:flex;gap:8px;align-items:center}
.legend small{display:block;color:var(--soft);font-size:12.5px}
.legend.tight{gap:2px 16px;margin:6px 0 0;font-size:13px}
.legend.tight small{display:inline}
.glyph{width:28px;height:28px;flex:none}
.chip{width:13px;height:13px;border-radius:3px;flex:none;display:inline-block}
.legend:not(.tight) .chip{width:24px;height:24px;border-radius:5px;text-align:center;line-height:24px;font-size:13px;color:var(--on)}
.bars{margin-top:20px;max-width:720px}
.bars div{display:grid;grid-template-columns:minmax(9em,auto) minmax(60px,1fr) minmax(15em,auto);gap:12px;align-items:center;padding:2px 0;font-size:13px}
.bars .chosen{font-weight:600}
.bars small{color:var(--soft);font-weight:400}
.bar{background:var(--well);border-radius:4px;height:12px;overflow:hidden}
.bar i{display:block;height:100%;background:var(--m5)}
details{border-top:1px solid var(--line);padding:8px 0}
details:first-of-type{border-top:0}
summary{cursor:pointer;font-weight:600}
.scroll{overflow-x:auto;margin-top:6px}
table{border-collapse:collapse;min-width:60%;font-size:13px}
th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap;vertical-align:top}
th{color:var(--soft);font-weight:600}
th:first-child,td:first-child,th:last-child,td:last-child{text-align:left}
.wide td:nth-child(-n+3),.wide th:nth-child(-n+3){text-align:left}
td:last-child{white-space:normal;min-width:18ch}
tr.sub td{color:var(--soft)}
tr.sub td:first-child{padding-left:26px}
tr.sum td{font-weight:600;border-bottom:0}
footer{margin-top:40px;color:var(--soft);font-size:13px}
@media(max-width:860px){section.pair{grid-template-columns:minmax(0,1fr)}}
@media print{.card{break-inside:avoid}}
)css";

} // namespace hybrid

#endif // HYBRID_LIB_REPORT_PAGESTYLE_H
