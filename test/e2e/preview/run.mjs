// Opens the shipped page bundles in headless Chromium with an in-memory host, under the editor's content security
// policy, in each kind of theme and at several widths, and saves screenshots. Fails on any console error (including
// policy violations), on text that became markup, on horizontal scrolling, and if the large run exceeds its time
// limits. With --axe, opens each page once in each kind of theme instead, and some states behind a click, and also fails
// on serious violations of accessibility rules (axe-core).
// node test/e2e/preview/run.mjs [--out FOLDER] [--only SUBSTRING] [--axe]
import { build } from 'esbuild';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { argv, env, exit } from 'node:process';
import { chromium } from 'playwright-core';
import { atRest } from '../at-rest.mjs';
import { storedFiles } from '../fixtures/stored-run.mjs';
import { shots } from './shots.mjs';
import { themes } from './themes.mjs';

const option = name => (argv.includes(name) ? argv[argv.indexOf(name) + 1] : undefined);
const out = path.resolve(option('--out') ?? '.e2e/preview');
const only = option('--only') ?? '';
const audit = argv.includes('--axe');
const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const nonce = 'cHJldmlldw';
mkdirSync(out, { recursive: true });

await build({
  entryPoints: {
    dashboard: 'webview/dashboard/main.ts',
    episodes: 'webview/episodes/main.ts',
    collapse: 'webview/collapse/main.ts',
    compare: 'webview/compare/main.ts',
    live: 'webview/live/main.ts',
    play: 'webview/play/main.ts',
    'new-run': 'webview/new-run/main.ts',
    query: 'webview/query/main.ts',
    sweep: 'webview/sweep/main.ts',
    timeline: 'webview/timeline/main.ts',
    'run-table': 'webview/run-table/main.ts',
    log: 'webview/log/main.ts',
    host: 'test/e2e/preview/browser-host.ts',
  },
  bundle: true,
  minify: true,
  platform: 'browser',
  format: 'iife',
  target: 'es2022',
  outdir: path.join(out, 'bundle'),
  logLevel: 'error',
});

const metrics = readFileSync('docs/METRICS.md', 'utf8');
/** Files of a scenario that names a stored run. */
const filesOf = scenario => {
  if (scenario.endsWith('.csv'))
    return { 'experiment.csv': readFileSync(`test/experiments/results/${scenario}`, 'utf8') };
  return /-run\b/.test(scenario) ? storedFiles(scenario.split(' ')[0]) : null;
};
const page = ({ name, theme, scenario }) => `<!DOCTYPE html>
<html lang="en" style="${Object.entries(themes[theme].variables)
  .map(([key, value]) => `--vscode-${key}: ${value.replaceAll('"', "'")}`)
  .join('; ')}">
<head><meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'nonce-${nonce}'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'">
<meta name="viewport" content="width=device-width, initial-scale=1.0"><title>${name}</title>
<link rel="stylesheet" href="/bundle/${name}.css"></head>
<body class="${themes[theme].class}" data-run="/work/run"><div id="app"></div>
<script nonce="${nonce}">window.previewScenario = ${JSON.stringify(scenario)}; window.previewMetrics = ${JSON.stringify(metrics).replaceAll('<', '\\u003c')}; window.previewFiles = ${JSON.stringify(filesOf(scenario)).replaceAll('<', '\\u003c')};</script>
<script nonce="${nonce}" src="/bundle/host.js"></script>
<script nonce="${nonce}" src="/bundle/${name}.js"></script></body></html>`;

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (url.pathname.startsWith('/bundle/')) {
    response.setHeader('content-type', url.pathname.endsWith('.css') ? 'text/css' : 'text/javascript');
    response.end(readFileSync(path.join(out, 'bundle', path.basename(url.pathname))));
  } else if (url.pathname === '/page') {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(page(Object.fromEntries(url.searchParams)));
  } else {
    response.statusCode = url.pathname === '/favicon.ico' ? 204 : 404;
    response.end();
  }
});
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({
  executablePath: env.CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});
/**
 * The serious and critical violations of WCAG 2.1 AA on a page, each with its first element. The label of a list's option
 * may differ from its visible text: it spells out what the cells of the row abbreviate.
 */
const violationsOn = async tab => {
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate(() =>
    window.axe.run(document, { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }),
  );
  const isSpelledOut = (id, html) => id === 'label-content-name-mismatch' && html.includes('role="option"');
  return violations
    .filter(({ impact }) => ['serious', 'critical'].includes(impact))
    .map(({ id, nodes }) => ({ id, nodes: nodes.filter(({ html }) => !isSpelledOut(id, html)) }))
    .filter(({ nodes }) => nodes.length > 0)
    .map(({ id, nodes: [{ html, failureSummary }, ...others] }) =>
      [`violates ${id} in ${html.slice(0, 160)}`, ...(others.length > 0 ? [`and ${others.length} more elements`] : [])]
        .concat(failureSummary.split('\n').at(-1).trim())
        .join('; '),
    );
};
/** States behind a click or in narrow pages, in which selected, faded and folded parts are shown. */
const furtherAudited = [
  'episodes-light-filter',
  'episodes-light-sorted',
  'episodes-dark-group',
  'episodes-light-training',
  'film-dark',
  'heat-dark-film',
  'collapse-light-diagnosed',
  'collapse-dark-turns',
  'timeline-dark-step',
  'roles-live-light-1100',
  'dashboard-light-320',
];

/** For --axe: the first picture of each page, in each kind of theme, and further pictures in their own theme. */
const audited = () => {
  const first = new Map(
    shots
      .filter(({ scenario }) => !/large|hostile/i.test(scenario))
      .reverse()
      .map(shot => [shot.name, shot]),
  );
  const everyTheme = [...first.values()].flatMap(shot =>
    Object.keys(themes).map(theme => ({ ...shot, theme, width: 600, file: `${shot.name}-${theme}` })),
  );
  const further = furtherAudited.map(file => {
    const shot = shots.find(each => each.file === file);
    if (!shot) throw new Error(`preview: furtherAudited names ${file}, which is no picture: correct the name`);
    return shot;
  });
  return [...everyTheme, ...further];
};
const problems = [];
for (const shot of (audit ? audited() : shots).filter(({ file }) => file.includes(only))) {
  const { file, name, theme, scenario, width, height = 900, zoom = 1, act } = shot;
  const context = await browser.newContext({
    viewport: { width: Math.round(width / zoom), height: Math.round(height / zoom) },
    deviceScaleFactor: zoom,
  });
  const tab = await context.newPage();
  const complain = text => problems.push(`${file}: ${text}`);
  tab.on('console', message => message.type() === 'error' && complain(message.text()));
  tab.on('pageerror', error => complain(String(error)));
  await tab.goto(`${origin}/page?${new URLSearchParams({ name, theme, scenario })}`);
  await tab.waitForSelector(shot.ready ?? '#app > *');
  await atRest(tab);
  await act?.(tab, complain);
  await atRest(tab);
  if (await tab.evaluate(() => 'harmed' in window)) complain('a text was interpreted as markup');
  const excess = await tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (excess > 0) complain(`scrolls horizontally by ${excess} px`);
  if (audit) for (const violation of await violationsOn(tab)) complain(violation);
  await tab.screenshot({ path: path.join(out, `${file}.png`) });
  console.log(`${file}.png`);
  await context.close();
}
await browser.close();
server.close();
for (const problem of problems) console.error(problem);
exit(problems.length > 0 ? 1 : 0);
