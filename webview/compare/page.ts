// The page that compares runs: a table of each configuration's results, and a chart of all runs for every metric. Runs
// that differ only by seed are one line with a band. A run has the same colour as on other pages, unless an earlier
// group uses it.
import {
  compareColumns,
  compareGrew,
  compareOpen,
  compareReady,
  type CompareSnapshot,
} from '../../extension/protocol/compare-page';
import { meaningOf } from '../../extension/run-data/metric-meanings';
import { arrange, unitOf } from '../dashboard/catalogue';
import { DrawQueue } from '../dashboard/draw-queue';
import type { Plotter } from '../dashboard/plot';
import { h, replaceChildren, setText } from '../shared/dom';
import { messageOf, type Host } from '../shared/host';
import { notice, skeleton } from '../shared/notices';
import { colourOfRun, hue } from '../shared/palette';
import { viewState } from '../shared/state';
import { onThemeChange, readTheme } from '../shared/theme';
import { dropdown, textField } from '../shared/toolkit';
import { CompareChart, type ComparedMetric } from './compare-chart';
import { compareTable } from './compare-table';
import type { RunCurve } from './group-curves';

const viewSchema = 1;
/** Chart groups that are open initially. */
const openAtFirst = ['task', 'policy', 'collapse'];

interface View {
  smoothing: number;
  open: string[];
  /** Metric of the table; null for success, if it was measured. */
  metric: string | null;
}

/** Starts the page in `root`. `plotter` draws on a canvas. */
export function startCompare(host: Host, root: HTMLElement, plotter: Plotter): void {
  const state = viewState<View>(host, viewSchema, { smoothing: 0, open: openAtFirst, metric: null });
  const queue = new DrawQueue(() => true);
  const charts = new Map<string, CompareChart>();
  const title = h('h1', {});
  const tableSlot = h('div', {
    class: 'table-scroll',
    tabindex: 0,
    role: 'region',
    'aria-label': 'Results by configuration',
  });
  const metricSlot = h('span');
  const body = h('main', { class: 'dashboard-body' });
  const slider = h('input', {
    type: 'range',
    min: 0,
    max: 0.99,
    step: 0.01,
    value: state.value.smoothing,
    'aria-label': 'Smoothing',
  });
  const search = textField({
    label: 'Search metrics',
    placeholder: 'Search metrics',
    class: 'search',
    onInput: layOut,
  });
  const bar = h(
    'header',
    { class: 'top-bar' },
    h('div', { class: 'top-row' }, title),
    h(
      'div',
      { class: 'top-row controls' },
      search,
      h('label', { class: 'smoothing' }, 'smoothing', slider),
      metricSlot,
    ),
  );
  let snapshot: CompareSnapshot | null = null;
  let colours: number[] = [];
  let theme = readTheme();
  /** Columns by key, one curve per run; requested when a chart comes on screen. */
  let columns = new Map<string, RunCurve[]>();
  const wanted = new Set<string>();
  let asking = false;

  slider.addEventListener('input', () => {
    state.change({ smoothing: Number(slider.value) });
    drawAll();
  });
  const observer = new IntersectionObserver(
    entries => {
      for (const { target, isIntersecting } of entries)
        charts.get((target as HTMLElement).dataset.chart ?? '')?.setVisible(isIntersecting);
    },
    { rootMargin: '100px' },
  );
  onThemeChange(now => {
    theme = now;
    drawAll();
    showTable();
  });
  host.onNotify(compareGrew, load);
  load();

  function load(): void {
    if (!snapshot) replaceChildren(root, skeleton('skeleton-charts', 8, 'Loading the runs'));
    host.request(compareReady, null).then(take, error => {
      snapshot = null;
      const action = { label: 'Try again', run: load };
      replaceChildren(
        root,
        notice({ kind: 'error', title: 'The runs could not be read', text: messageOf(error), action }),
      );
    });
  }

  function take(now: CompareSnapshot): void {
    const known = snapshot?.runs.map(({ run }) => run.id).join();
    if (known !== now.runs.map(({ run }) => run.id).join()) columns = new Map();
    snapshot = now;
    colours = coloursOf(now);
    state.keepFolder(document.body.dataset.run ?? '');
    setText(
      title,
      `${now.runs.length} runs of ${now.groups.length} ${now.groups.length === 1 ? 'configuration' : 'configurations'}`,
    );
    if (bar.parentElement !== root) replaceChildren(root, bar, tableSlot, body);
    const metrics = metricsOf(now).filter(({ group }) => group === 'task');
    const chosen = tableMetric();
    replaceChildren(
      metricSlot,
      dropdown({
        label: 'Metric of the table',
        choices: metrics.map(({ metric }) => [metric.key, metric.title] as const),
        value: chosen?.key ?? '',
        onChange: key => {
          state.change({ metric: key });
          want(key);
          showTable();
        },
      }),
    );
    for (const chart of charts.values()) if (chart.shown) wanted.add(chart.metric.key);
    if (chosen) wanted.add(chosen.key);
    layOut();
    ask();
  }

  /** The table's metric: the selected one, else validation success, else training success, else the first. */
  function tableMetric(): ComparedMetric | undefined {
    const all = snapshot ? metricsOf(snapshot).map(({ metric }) => metric) : [];
    const success = (side: string) => all.find(({ key }) => key.startsWith(side) && key.endsWith('/success'));
    return all.find(({ key }) => key === state.value.metric) ?? success('val-env/') ?? success('train/') ?? all[0];
  }

  function layOut(): void {
    if (!snapshot) return;
    const now = snapshot;
    const text = search.value.trim().toLowerCase();
    const shown = metricsOf(now).filter(({ metric: { key, title } }) => `${key} ${title}`.toLowerCase().includes(text));
    const keys = new Set(shown.map(({ metric }) => metric.key));
    for (const [key, chart] of charts) {
      if (keys.has(key)) continue;
      observer.unobserve(chart.element);
      chart.dispose();
      charts.delete(key);
    }
    const sections = [...new Set(shown.map(({ group }) => group))].map(id => {
      const own = shown.filter(({ group }) => group === id);
      const section = h('details', { 'data-group': id, open: text !== '' || state.value.open.includes(id) });
      section.append(
        h('summary', { class: 'group-title' }, own[0].groupTitle),
        h('div', { class: 'charts' }, ...own.map(({ metric }) => chartOf(metric, now).element)),
      );
      section.addEventListener('toggle', () => {
        if (search.value.trim() !== '') return;
        const open = state.value.open.filter(other => other !== id);
        state.change({ open: section.open ? [...open, id] : open });
      });
      return section;
    });
    const none = notice({
      kind: 'empty',
      title: 'No metric to show',
      text: text === '' ? 'None of these runs has finished a step.' : `Nothing in these runs matches “${text}”.`,
    });
    replaceChildren(body, ...(sections.length > 0 ? sections : [none]));
    drawAll();
    showTable();
  }

  function chartOf(metric: ComparedMetric, { meanings }: CompareSnapshot): CompareChart {
    let chart = charts.get(metric.key);
    if (!chart) {
      const hover = (step: number | null) => charts.forEach(each => each.hover(step));
      const meaning = meaningOf(meanings, metric.key);
      chart = new CompareChart(metric, meaning, plotter, queue, { hover, wanted: () => want(metric.key) });
      charts.set(metric.key, chart);
      observer.observe(chart.element);
    }
    return chart;
  }

  function want(key: string): void {
    if (columns.has(key) || wanted.has(key)) return;
    wanted.add(key);
    queueMicrotask(ask);
  }

  /** Requests all wanted columns, one request at a time. */
  function ask(): void {
    if (asking || wanted.size === 0 || !snapshot) return;
    asking = true;
    const keys = [...wanted];
    const of = snapshot;
    wanted.clear();
    host
      .request(compareColumns, { keys })
      .then(runs => {
        if (runs.length !== of.runs.length) return;
        for (const key of keys)
          columns.set(
            key,
            runs.map(({ steps, columns: own }) => ({
              steps,
              values: own[key] ?? new Float64Array(steps.length).fill(Number.NaN),
            })),
          );
        drawAll();
        showTable();
      })
      .catch(() => undefined) // the runs are being reloaded, after which the columns are requested again
      .finally(() => {
        asking = false;
        ask();
      });
  }

  function drawAll(): void {
    if (!snapshot) return;
    const { groups } = snapshot;
    for (const [key, chart] of charts) {
      const curves = columns.get(key);
      if (!curves) continue;
      const shown = groups.map(({ label, members }, index) => ({
        ...{ label, index, colour: colours[index] },
        curves: members.map(i => curves[i]),
      }));
      chart.update(shown, theme, state.value.smoothing);
    }
  }

  function showTable(): void {
    const metric = tableMetric();
    if (!snapshot || !metric) return replaceChildren(tableSlot);
    const empty: RunCurve = { steps: new Float64Array(), values: new Float64Array() };
    const curves = columns.get(metric.key) ?? snapshot.runs.map(() => empty);
    const table = compareTable(
      snapshot,
      metric,
      curves,
      { theme, colours },
      {
        dashboard: dashboard => host.notify(compareOpen, { dashboard }),
        difference: difference => host.notify(compareOpen, { difference }),
      },
    );
    const focused = document.activeElement;
    const at = tableSlot.contains(focused) ? [...tableSlot.querySelectorAll('button')].indexOf(focused as never) : -1;
    replaceChildren(tableSlot, table);
    if (at >= 0) tableSlot.querySelectorAll('button')[at]?.focus();
  }
}

/** One chart per key, in the dashboard's groups and order. */
function metricsOf({ runs }: CompareSnapshot): { group: string; groupTitle: string; metric: ComparedMetric }[] {
  const keys = [...new Set(runs.flatMap(run => run.keys))];
  return arrange({ keys }).flatMap(group =>
    group.charts.flatMap(chart =>
      chart.lines.map(({ key, label }) => {
        const title = chart.lines.length > 1 ? `${chart.title} · ${label}` : chart.title;
        return { group: group.id, groupTitle: group.title, metric: { key, title, unit: unitOf(key) } };
      }),
    ),
  );
}

/** A palette index for each group: that of its first run, or the next one not used by an earlier group. */
export function coloursOf({ groups, runs }: Pick<CompareSnapshot, 'groups' | 'runs'>): number[] {
  const taken: number[] = [];
  for (const { members } of groups) {
    const own = colourOfRun(runs[members[0]].run.id);
    const free = Array.from({ length: hue.grey }, (_, i) => (own + i) % hue.grey).find(at => !taken.includes(at));
    taken.push(free ?? own);
  }
  return taken;
}
