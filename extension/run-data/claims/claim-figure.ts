// The figure of a claim as one SVG file: a panel for each measure of its tests, with the mean of each arm over its seeds,
// its interval, and the seeds behind it; for correlations, a panel of dots (claim-scatter.ts). The panels draw exactly the metrics that decide the claim, so saved metrics
// (claim-metrics.ts) give the same figure as the runs. Pure functions.
import { intervalSeeds } from '../../common/mean-estimate';
import { comparisonOf, type DrawnGroup } from '../charts/comparison';
import { unitOf } from '../charts/catalogue';
import type { Theme } from '../charts/chart-theme';
import { metricName, quantityName, tagOf } from '../charts/metric-names';
import { svgOf } from '../charts/svg-plot';
import { alarmRules } from '../alarm-rules';
import { armsOf, type Claim, type ClaimTest, type Measure } from './claim-schema';
import { scatterOf } from './claim-scatter';
import { seriesOf, type MeasuredRun } from './run-measure';

type Plotted = Pick<Measure, 'metric' | 'over' | 'from'>;

/** A panel: curves of one measure in several arms, or of several metrics of one arm. */
interface Panel {
  title: string;
  curves: { label: string; arms: readonly string[]; measure: Plotted }[];
}

/** Size of a panel in SVG units; two panels stand side by side. */
const panelSize = { width: 460, height: 280 };
const columns = 2;
/** A panel with more arms is divided by the part of the arms' names before the comma. */
const mostArms = 6;

/** Returns the figure of a claim; undefined if no test has a value in any run. */
export function claimFigure(claim: Claim, runs: readonly MeasuredRun[], theme: Theme): string | undefined {
  const curves = panelsOf(claim, [...new Set(runs.map(({ arm }) => arm))]).map((panel, i) => {
    const data = panelData(panel, runs, theme);
    return data ? svgOf(data, panelSize, `panel-${i + 1}`) : undefined;
  });
  const scatters = scattersOf(claim).map(({ x, y, arms }) => {
    const own = runs.filter(({ arm }) => arms?.includes(arm) ?? true);
    return scatterOf({ x: named(x), y: named(y) }, own, panelSize, theme);
  });
  const drawn = [...curves, ...scatters].filter(panel => panel !== undefined);
  if (drawn.length === 0) return undefined;
  const width = Math.min(columns, drawn.length) * panelSize.width;
  const height = Math.ceil(drawn.length / columns) * panelSize.height;
  const placed = drawn.map((panel, i) => {
    const [x, y] = [(i % columns) * panelSize.width, Math.floor(i / columns) * panelSize.height];
    return panel.replace('<svg ', `<svg x="${x}" y="${y}" `);
  });
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const background = `<rect width="${width}" height="${height}" fill="${theme.background}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img">${background}\n${placed.join('')}</svg>\n`;
}

/** Returns the panels of a claim in the order of its tests. Tests of the same measure share a panel. */
export function panelsOf({ tests }: Pick<Claim, 'tests'>, arms: readonly string[]): Panel[] {
  const panels = new Map<string, { title: string; measure: Plotted; arms: Set<string> }>();
  const lists: Panel[] = [];
  const add = (measure: Plotted, own: readonly string[]): void => {
    const key = JSON.stringify([measure.metric, measure.over]);
    const panel = panels.get(key) ?? { title: titleOf(measure), measure: { ...measure, from: 0 }, arms: new Set() };
    for (const arm of own.length > 0 ? own : arms) panel.arms.add(arm);
    panels.set(key, panel);
  };
  for (const test of tests) {
    if (test.test === 'correlation') continue; // drawn as dots
    if (test.test === 'trend' && test.metrics) lists.push(listPanel(test, test.metrics, arms));
    else for (const measure of measuresOf(test)) add(measure, armsOf(test));
  }
  const shared = [...panels.values()].flatMap(({ title, measure, arms: own }) =>
    divided(arms.filter(arm => own.has(arm))).map(({ name, members }): Panel => ({
      title: name === undefined ? title : `${title}, ${name}`,
      curves: members.map(arm => ({ label: arm, arms: [arm], measure })),
    })),
  );
  return [...shared, ...lists];
}

/** Returns the name of a measure. The divisor of a ratio is named without the first parts that both names share. */
function titleOf({ metric, over }: Plotted): string {
  const title = nameOf(metric);
  if (over === undefined) return title;
  const [parts, divisor] = [title.split(', '), nameOf(over).split(', ')];
  const differs = divisor.findIndex((part, i) => part !== parts[i]);
  return `${title} ÷ ${divisor.slice(Math.max(differs, 0)).join(', ')}`;
}

function listPanel(
  { arm, measure }: Extract<ClaimTest, { test: 'trend' }>,
  metrics: readonly string[],
  arms: readonly string[],
): Panel {
  const names = metrics.map(metric => nameOf(metric).split(', '));
  const shared = names[0].filter(part => names.every(parts => parts.includes(part)));
  const own = arm === undefined ? arms : [arm];
  return {
    title: [...shared, ...(arm === undefined ? [] : [arm])].join(', '),
    curves: metrics.map((metric, i) => ({
      label: names[i].filter(part => !shared.includes(part)).join(', '),
      arms: own,
      measure: { ...measure, metric, from: 0 },
    })),
  };
}

/** Returns the pairs of metrics whose correlations a claim tests, each once. */
function scattersOf({ tests }: Pick<Claim, 'tests'>): { x: string; y: string; arms: readonly string[] | undefined }[] {
  const pairs = tests.flatMap(test =>
    test.test === 'correlation'
      ? [test.x, ...(test.against === undefined ? [] : [test.against])].map(x => ({ x, y: test.y, arms: test.arms }))
      : [],
  );
  return [...new Map(pairs.map(pair => [JSON.stringify(pair), pair])).values()];
}

function measuresOf(test: Exclude<ClaimTest, { test: 'correlation' }>): Plotted[] {
  const plain = (metric: string): Plotted => ({ metric, over: undefined, from: 0 });
  switch (test.test) {
    case 'difference':
    case 'level':
    case 'trend':
      return [test.measure, ...(test.measure.before === undefined ? [] : [plain(test.measure.before)])];
    case 'alarms':
      return ['success', ...test.alarms.map(name => alarmRules[name].metric)].map(plain);
  }
}

/** Divides many arms by the part of their names before the comma. */
function divided(arms: readonly string[]): { name?: string; members: string[] }[] {
  if (arms.length <= mostArms) return [{ members: [...arms] }];
  const names = [...new Set(arms.map(arm => arm.split(',')[0]))];
  if (names.length === arms.length) return [{ members: [...arms] }];
  return names.map(name => ({ name, members: arms.filter(arm => arm.split(',')[0] === name) }));
}

function panelData({ title, curves }: Panel, runs: readonly MeasuredRun[], theme: Theme) {
  if (curves.length === 0) return null;
  const members = curves.flatMap(({ arms, measure }, group) =>
    runs.filter(({ arm }) => arms.includes(arm)).map(({ steps }) => ({ group, points: seriesOf(steps, measure) })),
  );
  const groups = curves.map(({ label }, i): DrawnGroup => ({
    label,
    members: [...members.keys()].filter(member => members[member].group === i),
    colour: i,
    dash: 0,
  }));
  const steps = members.map(({ points }) => Float64Array.from(points, ({ step }) => step));
  const { data } = comparisonOf(
    { title, unit: curves[0].measure.over === undefined ? unitOf(curves[0].measure.metric) : 'number' },
    groups.filter(group => group.members.length > 0),
    members.map(({ points }, i) => ({ steps: steps[i], values: Float64Array.from(points, ({ value }) => value) })),
    steps,
    {
      ...{ theme, smoothing: 0, axis: 'step', zoom: null, log: false, baseline: null, previous: null },
      large: groups.every(group => group.members.length >= intervalSeeds),
      events: members.map(() => []),
    },
  );
  return data;
}

const named = (metric: string): { metric: string; name: string } => ({ metric, name: nameOf(metric) });

/** Returns the name of a metric. A tag's metric is named with its side and tag, so that panels of tags differ. */
function nameOf(key: string): string {
  if (key === 'success') return 'Validation success';
  const tag = tagOf(key);
  return tag === undefined ? quantityName(key) : `${metricName(key)}, ${tag}`;
}
