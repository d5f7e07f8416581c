// The dialogs of a chart: the ends of its y axis, and the expressions of the user's own charts.
import type { Limits } from '../../../extension/run-data/charts/axis';
import type { ChartSpec, Panel } from '../../../extension/run-data/charts/catalogue';
import { functionNames } from '../../charts/expression';
import { freeId, panelGroup, panelProblems } from '../../charts/panels';
import { openForm } from '../../components/form-dialog';
import type { DashboardSettings } from '../dashboard-settings';
import type { DashboardState } from '../state';

type AllLimits = DashboardSettings['limits'];

/** Asks for the ends of a chart's y axis and passes the changed limits of all charts to `change`. */
export function editLimits({ id, title }: ChartSpec, all: AllLimits, change: (limits: AllLimits) => void): void {
  const { low = null, high = null } = all[id] ?? {};
  openForm({
    title: `Y axis of ${title}`,
    action: 'Set',
    help: 'An empty field lets its end follow the values.',
    fields: [
      { name: 'high', label: 'Upper end', value: high === null ? '' : String(high), placeholder: 'follows the values' },
      { name: 'low', label: 'Lower end', value: low === null ? '' : String(low), placeholder: 'follows the values' },
    ],
    accept(texts) {
      const limits = limitsOf(texts);
      if ('problems' in limits) return limits.problems;
      const { [id]: _, ...others } = all;
      change(limits.low === null && limits.high === null ? others : { ...others, [id]: limits });
      return null;
    },
  });
}

/** Parses the ends of an axis; a number may be followed by `%`. */
export function limitsOf(texts: {
  low: string;
  high: string;
}): Limits | { problems: Partial<Record<'low' | 'high', string>> } {
  const problems: Partial<Record<'low' | 'high', string>> = {};
  const read = (name: 'low' | 'high'): number | null => {
    const [, number, percent] = /^(.*?)\s*(%?)$/.exec(texts[name].trim()) ?? [];
    if (number === '' && percent === '') return null;
    const value = Number(number.replace(',', '.')) / (percent === '%' ? 100 : 1);
    if (number !== '' && Number.isFinite(value)) return value;
    problems[name] = `“${texts[name].trim()}” is not a number: enter a number, such as 0.5 or 50 %.`;
    return null;
  };
  const [high, low] = [read('high'), read('low')];
  if (low !== null && high !== null && low >= high)
    problems.low = `The lower end ${low} must be below the upper end ${high}.`;
  return Object.keys(problems).length > 0 ? { problems } : { low, high };
}

/**
 * Asks for the expressions of a chart, and passes the changed settings to `change`. `panel` is the chart to edit; null
 * adds a chart, with `y` as the first content of its field.
 */
export function editPanel(
  panel: Panel | null,
  y: string | undefined,
  { series, settings }: DashboardState,
  change: (part: Partial<DashboardSettings>) => void,
): void {
  const { panels, open } = settings;
  const suggestions = series.keys.filter(key => key !== 'wall_s').sort();
  openForm({
    title: panel ? 'Edit the chart' : 'New chart',
    action: panel ? 'Save' : 'Add',
    help: `Metrics, numbers, step, + - * / ^, parentheses and ${functionNames.join(', ')}; with blanks around - and /.`,
    fields: [
      {
        ...{ name: 'y', label: 'Values', value: panel?.y ?? y ?? '', suggestions },
        help: 'An expression for each line of the chart, separated by semicolons.',
      },
      {
        ...{ name: 'x', label: 'X axis', value: panel?.x ?? '', suggestions, placeholder: 'as the other charts' },
        help: 'An expression, to show the values against it.',
      },
      { name: 'title', label: 'Title', value: panel?.title ?? '', placeholder: 'made of the expressions' },
    ],
    accept(values) {
      const problems = panelProblems(values, series.keys);
      if (problems) return problems;
      const trimmed = { y: values.y.trim(), x: values.x.trim(), title: values.title.trim() };
      const edited = { id: panel?.id ?? freeId(panels), ...trimmed };
      change({
        panels: panel ? panels.map(each => (each.id === panel.id ? edited : each)) : [...panels, edited],
        ...(!panel && { open: [...open.filter(id => id !== panelGroup), panelGroup] }),
      });
      return null;
    },
  });
}
