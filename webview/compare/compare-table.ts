// Results of each group: the final and the best value of the selected metric as mean ± 95 % interval over seeds, then
// the configuration keys that differ, and the group's runs.
import type { CompareSnapshot } from '../../extension/protocol/compare-page';
import type { Estimate } from '../../extension/common/estimate';
import { h } from '../shared/dom';
import { formatValue, type Unit } from '../shared/format';
import { displayStatus } from '../shared/run-status';
import type { Theme } from '../shared/theme';
import { outcomes, type RunCurve } from './group-curves';

export interface TableActions {
  dashboard(folder: string): void;
  difference(folders: [string, string]): void;
}

/** `curves` are the metric's curves by run; empty for runs without the metric. */
export function compareTable(
  { runs, groups, keys }: CompareSnapshot,
  metric: { title: string; unit: Unit },
  curves: readonly RunCurve[],
  look: { theme: Theme; colours: readonly number[] },
  actions: TableActions,
): HTMLElement {
  const head = ['', `${metric.title}, final`, `${metric.title}, best`, ...keys.map(shortName(keys)), 'runs', ''];
  const first = runs[groups[0]?.members[0]]?.run.folder;
  const rows = groups.map(({ label, members, values }, g) => {
    const { final, best } = outcomes(members.map(i => curves[i]));
    const swatch = h('span', {
      class: 'swatch',
      style: `background:${look.theme.palette[look.colours[g] % look.theme.palette.length]}`,
    });
    const links = members.map(i => {
      const { run, seed } = runs[i];
      const status = displayStatus(run);
      const text = members.length > 1 ? `seed ${seed}` : 'dashboard';
      const link = h(
        'button',
        { class: 'plain link', type: 'button', title: `${run.name}: ${status}, step ${run.status.step}` },
        status === 'finished' ? text : `${text} (${status})`,
      );
      link.addEventListener('click', () => actions.dashboard(run.folder));
      return link;
    });
    const own = runs[members[0]].run.folder;
    const difference =
      g > 0 &&
      h(
        'button',
        {
          class: 'plain link',
          type: 'button',
          title: `Difference of the configurations of ${groups[0].label} and ${label}`,
        },
        'difference',
      );
    if (difference) difference.addEventListener('click', () => actions.difference([first, own]));
    return h(
      'tr',
      {},
      h('th', { scope: 'row' }, swatch, label),
      h('td', { class: 'number' }, shown(final, metric.unit)),
      h('td', { class: 'number' }, shown(best, metric.unit)),
      ...values.map(value => h('td', { class: 'setting', title: value }, value)),
      h('td', {}, h('span', { class: 'runs' }, ...links)),
      h('td', {}, difference),
    );
  });
  const titles = head.map((text, i) => h('th', { scope: 'col', title: keys[i - 3] ?? null }, text));
  return h(
    'table',
    { class: 'compare-table' },
    h('caption', { class: 'visually-hidden' }, 'Results by configuration'),
    h('thead', {}, h('tr', {}, ...titles)),
    h('tbody', {}, ...rows),
  );
}

/** `61.2 % ± 4.0 %`; a dash if there is no value. */
function shown(value: Estimate | null, unit: Unit): string {
  if (value === null) return '–';
  const mean = formatValue(value.mean, unit);
  return value.interval === null ? mean : `${mean} ± ${formatValue(value.interval, unit)}`;
}

/** The last part of a key, if it is unique among the keys. */
const shortName =
  (keys: readonly string[]) =>
  (key: string): string => {
    const last = (name: string) => name.slice(name.lastIndexOf('.') + 1);
    return keys.filter(other => last(other) === last(key)).length > 1 ? key : last(key);
  };
