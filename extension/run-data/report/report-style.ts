// The style of an HTML report: light or dark as the browser prefers, light in print, on A4 pages.
import { paletteOf } from '../../common/palette';

const variables = (kind: 'light' | 'dark', others: Record<string, string>): string =>
  [...paletteOf(kind).map((colour, i) => [`data-${i}`, colour] as const), ...Object.entries(others)]
    .map(([name, value]) => `--${name}:${value}`)
    .join(';');

const light = variables('light', {
  ...{ background: '#ffffff', foreground: '#1f1f1f', muted: '#5c5c5c', border: '#d4d4d4', shade: '#f4f4f4' },
});
const dark = variables('dark', {
  ...{ background: '#1f1f1f', foreground: '#d6d6d6', muted: '#a0a0a0', border: '#454545', shade: '#2a2a2a' },
});

export const reportStyle = `:root{${light};color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{${dark}}}
*{box-sizing:border-box}
body{margin:0;background:var(--background);color:var(--foreground);font:15px/1.5 system-ui,sans-serif}
main,footer{max-width:60rem;margin:0 auto;padding:1rem}
footer{color:var(--muted);font-size:13px}
h1{font-size:1.6rem;line-height:1.25;margin:1rem 0}
h1,h2,h3,h4,p,li,dd,summary,figcaption,td,th{overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2rem 0 .6rem;border-bottom:1px solid var(--border);padding-bottom:.2rem}
h3{font-size:1.05rem;margin:1.4rem 0 .4rem}
h4{font-size:.9rem;margin:.8rem 0 .3rem}
.strong{font-weight:600}
.muted,.outcome,figcaption{color:var(--muted)}
.outcome{margin:.2rem 0 .6rem}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(19rem,1fr));gap:.2rem 1.5rem;margin:.6rem 0}
dl div{display:flex;gap:.6rem;border-bottom:1px solid var(--border);padding:.15rem 0}
dt{flex:0 0 8.5rem;color:var(--muted)}
dl .wide{grid-column:1/-1}
dd{margin:0;min-width:0}
.table{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;min-width:50%}
th,td{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--border)}
tbody th{font-weight:400}
.number{text-align:right}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr));gap:1rem;margin:.8rem 0}
figure{position:relative;margin:0}
figure>svg{display:block;width:100%;height:auto;border:1px solid var(--border);border-radius:4px}
figcaption{font-size:12px}
.cross{pointer-events:none}
.cross line{stroke:var(--muted);stroke-dasharray:3 3}
.tip{position:absolute;top:2.2rem;right:1rem;max-width:60%;padding:.3rem .6rem;background:var(--background);border:1px solid var(--border);border-radius:4px;font-size:12px;pointer-events:none}
.tip.at-left{right:auto;left:4rem}
.swatch{width:8px;height:8px;vertical-align:baseline}
.episode{margin:1rem 0;border:1px solid var(--border);border-radius:4px;padding:.5rem .8rem}
summary{cursor:pointer;font-weight:600}
.sides{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:1rem}
pre{margin:.2rem 0;padding:.4rem .6rem;background:var(--shade);border-radius:4px;font:12px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
.answer{border-left:3px solid var(--data-0)}
.board svg{max-width:100%;height:auto}
.picture{display:block;max-width:100%;height:auto;margin:.3rem 0;image-rendering:pixelated}
@media (max-width:600px){.sides{grid-template-columns:minmax(0,1fr)}}
@page{size:A4;margin:15mm 14mm}
@media print{
:root{${light};color-scheme:light}
body{font-size:10pt;print-color-adjust:exact}
main,footer{max-width:none;padding:0}
footer{margin-top:1.5rem}
h2,h3,h4,summary,.episode>p{break-after:avoid}
figure,tr,dl div,.sides,.end{break-inside:avoid}
.charts{grid-template-columns:1fr 1fr}
.table{overflow:visible}
table{font-size:8.5pt}
pre{font-size:8pt}
.episode{border:0;padding:0}
.tip,.cross{display:none}
}
`;
