// @vitest-environment happy-dom
// Reports of stored real runs: their sections, their numbers, and hostile texts in every field of a run.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Theme } from '../../../../extension/run-data/charts/chart-theme';
import { episodeSchema, type Episode } from '../../../../extension/run-data/episode';
import { numbersOf } from '../../../../extension/run-data/metric-segments';
import { eventSchema } from '../../../../extension/run-data/run-events';
import { manifestSchema } from '../../../../extension/run-data/run-manifest';
import { statusSchema } from '../../../../extension/run-data/run-status-file';
import { drawnReport } from '../../../../extension/run-data/report/drawn-report';
import { htmlTheme, reportHtml } from '../../../../extension/run-data/report/report-html';
import { paperTheme, reportMarkdown } from '../../../../extension/run-data/report/report-markdown';
import { chartsNamed, type DrawnRun } from '../../../../extension/run-data/report/report-charts';
import { ReportSeries, type ReportedRun } from '../../../../extension/run-data/report/reported-run';
import { summaryOf } from '../../../../extension/run-data/report/summary-report';
import { markupCorpus } from '../../../e2e/fixtures/markup-corpus.mjs';
import { storedFiles } from '../../../e2e/fixtures/stored-run.mjs';

const linesOf = (text: string): unknown[] =>
  text
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as unknown);

function stored(name: string): ReportedRun {
  const files = storedFiles(name);
  const manifest = manifestSchema.parse(JSON.parse(files['manifest.json']));
  const status = statusSchema.parse(JSON.parse(files['status.json']));
  const episodes = Object.entries(files)
    .filter(([file]) => file.startsWith('episodes/'))
    .flatMap(([, text]) => linesOf(text))
    .map(line => episodeSchema.parse(line));
  return {
    ...{ manifest, id: manifest.id, name: manifest.name, config: manifest.config },
    ...{ status, state: status.state, live: false, notes: '', checkpoints: [] },
    events: linesOf(files['events.jsonl']).map(line => eventSchema.parse(line)),
    metrics: linesOf(files['metrics.jsonl']).map(line => numbersOf(line)!),
    episodes: episodes.slice(0, 1).map(episode => ({ kind: 'best', change: null, episode })),
  };
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64');
const parts = { script: 'document.title;', footer: 'Written by a test', sha256 };
const reportOf = (runs: readonly ReportedRun[], theme: Theme) => drawnReport(summaryOf(runs), runs, theme);
const htmlOf = (runs: readonly ReportedRun[]): string => reportHtml(reportOf(runs, htmlTheme), parts);
const parsed = (html: string): Document => new DOMParser().parseFromString(html, 'text/html');
const lake = stored('lake-run');
const collapsing = stored('collapsing-run');

describe('the report of one run', () => {
  const html = htmlOf([lake]);
  const page = parsed(html);
  const text = page.body.textContent;

  it('has its sections in order', () => {
    const headings = [...page.querySelectorAll('h2')].map(heading => heading.textContent);
    expect(headings).toEqual([
      ...['Configuration', 'Charts', 'Reasoning', 'Episodes', 'Environments', 'Machine and versions'],
    ]);
  });

  it('has the facts of the run', () => {
    expect(page.querySelector('h1')?.textContent).toBe(lake.name);
    for (const fact of [lake.manifest.id, lake.manifest.config_hash, lake.manifest.model.sha256, 'step 32 of 32'])
      expect(text).toContain(fact);
    expect(text).toContain(lake.manifest.environments[0].version);
    for (const override of lake.manifest.overrides) expect(text).toContain(override);
  });

  it('has the charts of the overview with the logged values', () => {
    const [success] = page.querySelectorAll('figure.chart');
    expect(success.querySelector('figcaption')?.textContent).toContain('val-env/');
    const reading = JSON.parse(success.querySelector('script')!.textContent) as {
      lines: { label: string; points: [number, number][] }[];
    };
    const key = Object.keys(lake.metrics.at(-1)!).find(each => /^val-env\/[^/]+\/success$/.test(each))!;
    const logged = lake.metrics.filter(line => key in line).map(line => [line.step, line[key]]);
    expect(reading.lines.find(({ label }) => label === 'val')?.points).toEqual(
      logged.map(([step, value]) => [step, Number(value.toPrecision(6))]),
    );
  });

  it('says what the Collapse page says', () => {
    expect(text).toContain('Reasoning differs between prompts and still varies under each of them');
    expect(text).toContain('To try:');
  });

  it('draws boards', () => {
    const board = page.querySelector('.episode .board');
    expect(board?.getAttribute('aria-label')).toContain('FrozenLake');
    expect(board?.querySelectorAll('g').length).toBe(16);
  });

  it('loads nothing, and allows only its own style and script', () => {
    expect(html.replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|src=|@import|url\((?!#)/);
    const policy = page.querySelector('meta[http-equiv]')!.getAttribute('content')!;
    const [style, script] = ['style', 'body > script'].map(selector => page.querySelector(selector)!.textContent);
    expect(policy).toContain(`default-src 'none'; style-src 'sha256-${sha256(style)}'`);
    expect(policy).toContain(`script-src 'sha256-${sha256(script)}'`);
  });

  it('is the same for the same run', () => {
    expect(htmlOf([stored('lake-run')])).toBe(html);
  });
});

describe('the report of a run of another trainer', () => {
  const [chosen] = lake.episodes;
  const attached: ReportedRun = {
    ...lake,
    manifest: {
      ...lake.manifest,
      trainer: { name: 'verl', version: '0.9.1', adapter: 'verl', source: '/home/somebody/outputs' },
      model: { path: '', sha256: '', parameters: 0 },
      seeds: {},
      overrides: [],
    },
    episodes: [{ ...chosen, episode: { ...chosen.episode, success: null } }],
  };
  const text = parsed(htmlOf([attached])).body.textContent;

  it('names the trainer and leaves out what it did not store', () => {
    expect(text).toContain('verl 0.9.1');
    expect(text).toContain("The configuration of verl is in the run folder's manifest.");
    for (const absent of ['Model SHA-256', 'Parameters', 'without overrides', '/home/somebody'])
      expect(text).not.toContain(absent);
  });

  it('says that a success is unknown', () => {
    expect(text).toContain('success unknown');
    expect(text).not.toContain('no success');
  });
});

describe('a report with a chart that a plug-in lists', () => {
  const chart = (title: string) => ({ name: 'signal', title, keys: ['actor/entropy', 'rollout/in_group_reward_std'] });
  const htmlWith = (title: string, runs: readonly ReportedRun[]): string => {
    const data = { charts: [chart(title)] };
    const event = { time: lake.events[0].time, step: 0, kind: 'plugin_charts' as const, message: '', data };
    const listed = runs.map(run => ({ ...run, events: [...run.events, event] }));
    const document = { title: 'Own', blocks: [{ kind: 'charts' as const, charts: ['plugin_charts/signal'] }] };
    return reportHtml(drawnReport(document, listed, htmlTheme), parts);
  };

  it('draws its lines together for one run, and apart for several', () => {
    const [figure, ...others] = parsed(htmlWith('Learning signal', [lake])).querySelectorAll('figure.chart');
    expect(others).toEqual([]);
    expect(figure.textContent).toContain('Learning signal');
    expect(figure.querySelector('figcaption')!.textContent).toContain('actor/entropy, rollout/in_group_reward_std');
    expect(parsed(htmlWith('Signal', [lake, collapsing])).querySelectorAll('figure.chart')).toHaveLength(2);
  });

  it('shows markup in its title as text', () => {
    const page = parsed(htmlWith('<img src=x onerror=window.harmed=1>', [lake]));
    expect(page.querySelector('img')).toBeNull();
    expect(page.querySelector('figure.chart')!.textContent).toContain('<img src=x');
  });
});

describe('the report of several runs', () => {
  it('compares results and configurations, and draws a line per configuration', () => {
    const page = parsed(htmlOf([collapsing, lake]));
    const [results, differences] = page.querySelectorAll('table');
    expect([...results.querySelectorAll('tbody th')].map(cell => cell.textContent)).toEqual([
      collapsing.name,
      lake.name,
    ]);
    const lr = [...differences.querySelectorAll('tr')].find(row => row.textContent.includes('actor.optim.lr0'));
    expect([...lr!.querySelectorAll('td')].map(cell => cell.textContent)).toEqual(['0.0007', '0.0004']);
    const reading = JSON.parse(page.querySelector('figure script')!.textContent) as { lines: { label: string }[] };
    expect(reading.lines.map(({ label }) => label)).toEqual([collapsing.name, lake.name]);
  });

  it('draws the charts of plug-ins with their titles and units, also if one run computes what the other lists', () => {
    const plan = { name: 'turns', title: 'Turns', unit: 'share' as const };
    const withPlan = (run: ReportedRun, keys: string[]): DrawnRun => {
      const data = { charts: [{ ...plan, keys }] };
      const event = { time: '2026-02-03T00:00:00.000Z', step: 0, kind: 'plugin_charts' as const, message: 'x', data };
      const metrics = run.metrics.map(line => ({ ...line, 'plugin_charts/turns/done': 0.5 }));
      return { run: { ...run, events: [event] }, series: new ReportSeries(metrics) };
    };
    const groups = [collapsing, lake].map(({ name }, i) => ({ label: name, members: [i], colour: i, dash: 0 }));
    const drawn = (names: string[], ...runs: DrawnRun[]) =>
      chartsNamed(names, runs, groups, htmlTheme).map(({ caption, data }) => [caption, data.title, data.unit]);
    const computed = ['plugin_charts/turns/*'];
    expect(drawn(['plugin_charts/turns'], withPlan(collapsing, computed), withPlan(lake, computed))).toEqual([
      ['plugin_charts/turns/done', 'Turns', 'share'],
    ]);
    const names = ['plugin_charts/turns', 'plugin_charts/turns/*'];
    expect(drawn(names, withPlan(lake, computed), withPlan(collapsing, ['actor/entropy']))).toEqual([
      ['actor/entropy', 'Turns', 'share'],
      ['plugin_charts/turns/done', 'Turns (computed lines)', 'number'],
    ]);
  });

  it('distinguishes runs of equal names by their ids', () => {
    const other = { ...collapsing, name: lake.name };
    const text = parsed(htmlOf([other, lake])).querySelector('h1')!.textContent;
    expect(text).toContain(other.manifest.id);
    expect(text).toContain(lake.manifest.id);
  });
});

/** The run with `text` in every field that a run, a model or an environment can fill. */
function hostile(run: ReportedRun, text: string): ReportedRun {
  const { manifest, episodes } = run;
  const [{ episode }] = episodes;
  const spoiled: Episode = {
    ...episode,
    ...{ tag: text, final_state: text, error: text },
    turns: episode.turns.map(turn => ({ ...turn, state: text, raw: text, executed: [text], parsed: [text] })),
  };
  return {
    ...run,
    name: text,
    notes: text,
    manifest: {
      ...manifest,
      ...{ config_name: text, overrides: [text], versions: { [text]: text }, hardware: { [text]: text } },
      model: { ...manifest.model, path: text, revision: text },
      environments: [{ tag: text, name: text, source: text, version: text }],
      config: { ...manifest.config, [text]: text },
    },
    events: [...run.events, { time: '', step: 1, kind: 'alarm', message: text, data: { metric: text } }],
    metrics: run.metrics.map(line => ({ ...line, [`train/${text}/success`]: 0.5 })),
    episodes: [{ kind: 'best', change: null, episode: spoiled }],
  };
}

describe('hostile texts', () => {
  const short = { ...lake, metrics: lake.metrics.slice(0, 3) };
  const known = new Set(
    'html head meta title style body main h1 h2 h3 h4 p ul li dl div dt dd table thead tbody tr th td figure figcaption details summary section pre footer script svg rect line text defs clippath g path circle'.split(
      ' ',
    ),
  );

  it.each([...markupCorpus, '</script><script>x</script>', '<!--<script>', ']]>', '```\n# x'])(
    'stay texts: %j',
    text => {
      const runs = [hostile(short, text)];
      const page = parsed(htmlOf(runs));
      for (const element of page.querySelectorAll('*')) {
        expect(known).toContain(element.localName.toLowerCase());
        expect([...element.attributes].filter(({ name }) => /^on|^(href|src|style|xlink:href)$/i.test(name))).toEqual(
          [],
        );
      }
      const scripts = [...page.querySelectorAll('script')].filter(({ type }) => type !== 'application/json');
      expect(scripts.map(({ textContent }) => textContent)).toEqual([parts.script]);
      const { pictures } = reportMarkdown(reportOf(runs, paperTheme), 'figures', '');
      for (const [name, svg] of pictures) {
        expect(name).toMatch(/^figures\/[\w-]+\.svg$/);
        const drawn = new DOMParser().parseFromString(svg as string, 'image/svg+xml');
        expect(drawn.querySelector('script, foreignObject, a, image')).toBeNull();
      }
    },
  );

  it('cannot leave a code block or a table cell of Markdown', () => {
    const { text } = reportMarkdown(
      reportOf([hostile(short, '```\n| <b>x</b> [a](b) *c* `d` |')], paperTheme),
      'f',
      '',
    );
    const outside = text.replace(/^(`{3,})text\n[\s\S]*?\n\1$/gm, '');
    expect(outside).not.toContain('<b>');
    expect(outside).not.toMatch(/(?<!\\)\[a(?<!\\)\]\(b/);
    expect(text).toContain('````text');
  });
});

describe('pictures of states', () => {
  const png = 'data:image/png;base64,iVBORw0KGgo=';
  const [{ episode, ...chosen }] = lake.episodes;
  const [first, ...others] = episode.turns;
  const turns = [{ ...first, pictures: [png, null] }, ...others];
  const shown = { ...episode, turns, final_pictures: ['x" onerror="alert(1)', png.replace('png', 'jpeg')] };
  const seen: ReportedRun = { ...lake, episodes: [{ ...chosen, episode: shown }] };

  it('are in the HTML file, which may load nothing else', () => {
    const page = parsed(htmlOf([seen]));
    const urls = [...page.querySelectorAll('img')].map(image => image.getAttribute('src'));
    expect(urls).toEqual([png, png.replace('png', 'jpeg')]);
    expect(page.body.textContent.match(/\[picture missing\]/g)).toHaveLength(2);
    expect(page.querySelector('meta[http-equiv]')?.getAttribute('content')).toContain('img-src data:;');
  });

  it('are files beside the Markdown text', () => {
    const { text, pictures } = reportMarkdown(reportOf([seen], paperTheme), 'figures', '');
    const files = [...pictures].filter(([name]) => /\.(png|jpeg)$/.test(name));
    expect(files.map(([name]) => name)).toEqual([
      'figures/episode-1-1-picture-1.png',
      'figures/episode-1-end-picture-2.jpeg',
    ]);
    for (const [name, content] of files) {
      expect(text).toContain(`](${name})`);
      expect(content).toEqual({ base64: 'iVBORw0KGgo=' });
    }
  });
});

describe('the Markdown report', () => {
  it('refers to each of its pictures once', () => {
    const { text, pictures } = reportMarkdown(reportOf([lake], paperTheme), 'report-figures', 'Written by a test');
    const named = [...text.matchAll(/\]\(([^)]+\.svg)\)/g)].map(([, name]) => decodeURIComponent(name));
    expect(named.sort()).toEqual([...pictures.keys()].sort());
    expect(pictures.size).toBeGreaterThan(8);
    for (const svg of pictures.values()) expect(svg).not.toContain('var(');
  });
});
