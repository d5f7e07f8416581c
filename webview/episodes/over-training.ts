// One prompt over training: a strip of its episodes' returns by step, a slider over the steps at which it was played,
// and the episode of the selected step next to an earlier one, which shows how the reasoning changed.
import type { EpisodeTable } from '../../extension/run-data/episode-table';
import { h, replaceChildren, setAttribute, setText, svg } from '../shared/dom';
import { formatSigned } from '../shared/format';

/** The rows of a prompt at one step. */
export interface Occurrence {
  step: number;
  mode: 'train' | 'val';
  rows: number[];
}

/** Groups rows, which are sorted by step, by step and kind. */
export function occurrences(table: EpisodeTable, rows: readonly number[]): Occurrence[] {
  const found: Occurrence[] = [];
  for (const row of rows) {
    const { step, mode } = table.row(row);
    const last = found.at(-1);
    if (last?.step === step && last.mode === mode) last.rows.push(row);
    else found.push({ step, mode, rows: [row] });
  }
  return found;
}

/** The representative row of an occurrence: the same member as `row`, else the first. */
export function counterpart(table: EpisodeTable, { rows }: Occurrence, row: number): number {
  const [group, member] = [table.column('group'), table.column('member')];
  return (
    rows.find(other => group[other] === group[row] && member[other] === member[row]) ??
    rows.find(other => member[other] === member[row]) ??
    rows[0]
  );
}

export const occurrenceName = ({ step, mode }: Pick<Occurrence, 'step' | 'mode'>): string =>
  mode === 'val' ? `validation ${step}` : `step ${step}`;

/** Strip and slider. `go` receives the index of the selected occurrence. */
export function timeline(go: (at: number) => void): {
  element: HTMLElement;
  update(table: EpisodeTable, all: readonly Occurrence[], at: number): void;
} {
  const slider = h('input', { type: 'range', min: 0, step: 1, 'aria-label': 'Step at which the prompt was played' });
  slider.addEventListener('input', () => go(Number(slider.value)));
  const strip = h('div', { class: 'strip' });
  const where = h('output', { class: 'where' });
  return {
    element: h('div', { class: 'timeline' }, strip, slider, where),
    update(table, all, at) {
      setAttribute(slider, 'max', String(all.length - 1));
      slider.value = String(at);
      setAttribute(slider, 'aria-valuetext', occurrenceName(all[at]));
      replaceChildren(strip, returnStrip(table, all, at));
      const success = table.column('success');
      const reward = table.column('reward');
      const { rows } = all[at];
      const solved = rows.reduce((total, row) => total + success[row], 0);
      const mean = rows.reduce((total, row) => total + reward[row], 0) / rows.length;
      setText(
        where,
        `${occurrenceName(all[at])} · ${at + 1} of ${all.length} · ${solved}/${rows.length} solved · mean return ${formatSigned(mean)}`,
      );
    },
  };
}

const size = { width: 1000, height: 56, edge: 6 };
/** Maximum number of dots; beyond it, each step is drawn by its range and mean. */
const mostDots = 4000;

/** Each episode's return as a dot, large if it succeeded; the mean as a line, the selected step as a bar. */
function returnStrip(table: EpisodeTable, all: readonly Occurrence[], at: number): SVGElement {
  const [success, reward] = [table.column('success'), table.column('reward')];
  const values = all.flatMap(({ rows }) => rows.map(row => reward[row]));
  const [low, high] = [
    values.reduce((a, b) => Math.min(a, b), Infinity),
    values.reduce((a, b) => Math.max(a, b), -Infinity),
  ];
  const x = (i: number) =>
    all.length === 1 ? size.width / 2 : size.edge + (i / (all.length - 1)) * (size.width - 2 * size.edge);
  const y = (value: number) =>
    high === low
      ? size.height / 2
      : size.height - size.edge - ((value - low) / (high - low)) * (size.height - 2 * size.edge);
  const mean = ({ rows }: Occurrence) => rows.reduce((total, row) => total + reward[row], 0) / rows.length;
  const dots =
    values.length > mostDots
      ? []
      : all.flatMap(({ rows }, i) =>
          rows.map(row =>
            svg('path', {
              class: success[row] ? 'solved' : 'unsolved',
              d: `M${x(i).toFixed(1)} ${y(reward[row]).toFixed(1)}h0`,
            }),
          ),
        );
  const path = all.map((each, i) => `${i === 0 ? 'M' : 'L'}${x(i).toFixed(1)} ${y(mean(each)).toFixed(1)}`).join('');
  return svg(
    'svg',
    {
      viewBox: `0 0 ${size.width} ${size.height}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': `Returns of this prompt’s episodes over training, from ${formatSigned(low)} to ${formatSigned(high)}`,
    },
    svg('rect', { class: 'here', x: (x(at) - 4).toFixed(1), y: 0, width: 8, height: size.height }),
    svg('path', { class: 'mean', d: path }),
    ...dots,
  );
}
