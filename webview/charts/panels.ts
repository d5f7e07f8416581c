// The user's own charts: metrics or expressions of metrics, by the x axis of the page or against another expression.
// They are part of the view settings, so each dashboard of the workspace has them. Pure functions.
import { didYouMean } from '../../extension/common/suggest';
import { hue } from '../shared/run-colours';
import { unitOf, type ChartGroup, type ChartSpec, type Panel } from '../../extension/run-data/charts/catalogue';
import { derivedKey, isDerived } from './derived-curves';
import { isProblem, parseExpression, stepName } from './expression';
import { metricName } from '../../extension/run-data/charts/metric-names';

/** Id of the group of the user's own charts. */
export const panelGroup = 'panels';

const colours = [hue.blue, hue.vermillion, hue.green, hue.orange, hue.purple, hue.sky, hue.yellow];
const mostLines = colours.length;

/** Returns the group of the user's own charts; nothing without such charts. */
export const panelGroups = (panels: readonly Panel[]): ChartGroup[] =>
  panels.length === 0 ? [] : [{ id: panelGroup, title: 'Your charts', charts: panels.map(panelChart) }];

function panelChart(panel: Panel): ChartSpec {
  const keys = expressionsIn(panel.y).map(keyOf);
  const names = keys.map(nameOf);
  const against = panel.x === '' ? undefined : keyOf(panel.x);
  const made = names.join(', ') + (against === undefined ? '' : ` against ${nameOf(against)}`);
  const units = new Set(keys.map(key => (isDerived(key) ? 'number' : unitOf(key))));
  return {
    id: panel.id,
    title: panel.title || made,
    unit: units.size === 1 ? [...units][0] : 'number',
    lines: keys.map((key, i) => ({ key, label: names[i], colour: colours[i % mostLines] })),
    panel,
    against,
  };
}

/** Returns the name of a line or an axis: the name of a metric, or the text of an expression. */
export const nameOf = (key: string): string => (isDerived(key) ? key.slice(1) : metricName(key));

/** Returns the id of a further chart. */
export function freeId(panels: readonly Panel[]): string {
  for (let n = 1; ; n++) if (panels.every(({ id }) => id !== `panel ${n}`)) return `panel ${n}`;
}

/** Returns the problems of a chart's expressions by field, for a run with these metrics; null if there are none. */
export function panelProblems(
  { y, x }: Pick<Panel, 'x' | 'y'>,
  metrics: readonly string[],
): { y?: string; x?: string } | null {
  const of = (texts: readonly string[]): string | undefined =>
    texts.map(text => problemIn(text, metrics)).find(problem => problem !== undefined);
  const texts = expressionsIn(y);
  const ofY =
    texts.length === 0
      ? 'Enter a metric or an expression.'
      : texts.length > mostLines
        ? `A chart has at most ${mostLines} lines; this one has ${texts.length}.`
        : of(texts);
  const ofX = x.trim() === '' ? undefined : of([x]);
  return ofY === undefined && ofX === undefined ? null : { y: ofY, x: ofX };
}

function problemIn(text: string, metrics: readonly string[]): string | undefined {
  const parsed = parseExpression(text);
  if (isProblem(parsed)) return parsed.problem;
  const unknown = parsed.names.find(name => name !== stepName && !metrics.includes(name));
  if (unknown === undefined) return undefined;
  // `a/b-c` may be meant as a difference, but `-` and `/` are part of keys.
  const isJoined = /[-/]/.test(unknown) && metrics.some(key => unknown.includes(key));
  const otherwise = isJoined ? 'write blanks around - and / between metrics.' : 'choose a metric from the list.';
  return `This run has no metric ${unknown}: ${isJoined ? otherwise : didYouMean(unknown, metrics, otherwise)}`;
}

const expressionsIn = (text: string): string[] => text.split(';').flatMap(part => part.trim() || []);

/** Returns the key of a text's curve: the metric that the text names, or the key of the expression. */
function keyOf(text: string): string {
  const trimmed = text.trim();
  const parsed = parseExpression(trimmed);
  const isMetric =
    !isProblem(parsed) && parsed.names.length === 1 && parsed.names[0] === trimmed.replace(/^"(.*)"$/, '$1');
  return isMetric && parsed.names[0] !== stepName ? parsed.names[0] : derivedKey(trimmed);
}
