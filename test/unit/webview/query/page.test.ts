// @vitest-environment happy-dom
// The Query page: SQL is sent, the answer is a table and a chart of two columns, an error keeps the earlier result, a
// query can be cancelled, and SQL and chart are restored.
import { beforeEach, expect, it } from 'vitest';
import { queryCancel, queryRun, querySave } from '../../../../extension/protocol/query-page';
import { examples } from '../../../../webview/query/examples';
import { startQuery } from '../../../../webview/query/page';
import { seriesOf } from '../../../../webview/query/result-chart';
import { chartColumns } from '../../../../webview/query/state';
import { queryHost, type QueryScenario } from '../../../e2e/preview/query-host';
import { expectTextAlone } from '../hostile-host';
import { freshPage, pageHost, recordingPlotter, settle, type PageHost } from '../page-host';

let root: HTMLElement;
let drawn: ReturnType<typeof recordingPlotter>['drawn'];
beforeEach(() => (root = freshPage()));

async function open(scenario: QueryScenario, kept?: unknown): Promise<PageHost> {
  const host = pageHost(queryHost(scenario), kept);
  const recording = recordingPlotter();
  drawn = recording.drawn;
  startQuery(host, root, recording.plotter);
  await settle();
  return host;
}
const textarea = () => root.querySelector('textarea')!;
const run = async (): Promise<void> => {
  textarea().dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true }));
  await settle();
};
const write = (sql: string): void => {
  textarea().value = sql;
  textarea().dispatchEvent(new Event('input', { bubbles: true }));
};
const press = async (label: string): Promise<void> => {
  const found = [...root.querySelectorAll('vscode-button')].find(each => each.textContent.trim() === label);
  expect(found, label).toBeInstanceOf(HTMLElement);
  found!.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  await settle();
};
const cells = (): string[][] =>
  [...root.querySelectorAll('tbody tr')].map(row => [...row.querySelectorAll('td')].map(td => td.textContent.trim()));

it('shows the answer as a table, and a line for each run', async () => {
  const host = await open('lines');
  expect(textarea().value).toBe(examples[0].sql);
  await run();
  expect(host.asked).toContain(queryRun.method);
  expect(cells()[0]).toEqual(['0', '0.250', 'grpo seed 1']);
  expect(root.querySelector('[role=status]')!.textContent).toBe('26 rows in 214 ms');
  const [chart] = drawn.values();
  expect(chart.lines.map(({ label, points }) => [label, points.length])).toEqual([
    ['grpo seed 1', 13],
    ['ppo seed 1', 13],
  ]);
  expect([chart.x.min, chart.x.max]).toEqual([0, 48]);
});

it('shows bars if x is a text, and marks null', async () => {
  await open('bars');
  await run();
  const bars = [...root.querySelectorAll('.query-bars li')].map(li => li.textContent.replace(/\s+/g, ' ').trim());
  expect(bars).toEqual(['1e-4 0.703', '4e-4 0.625', '1e-3 0.188']);
  expect(cells()[3]).toEqual(['null', 'null', '1', '[]']);
});

it('keeps the earlier result if a query fails, and shows the reason', async () => {
  const host = await open('lines');
  await run();
  host.refuse(queryRun.method, 'the process ended');
  await run();
  expect(root.querySelector('[role=alert]')!.textContent).toBe('the process ended');
  expect(cells()).toHaveLength(26);
});

it('shows the database’s error without the command’s name', async () => {
  await open('error');
  await run();
  expect(root.querySelector('[role=alert]')!.textContent).toMatch(/^Parser Error: syntax error at or near "SELEC"/);
});

it('cancels a query in progress, and runs only one', async () => {
  const host = await open('lines');
  host.hold(queryRun.method);
  await run();
  await run();
  expect(host.asked.filter(method => method === queryRun.method)).toHaveLength(1);
  await press('Cancel');
  expect(host.sent).toEqual([{ method: queryCancel.method, params: null }]);
});

it('saves the result, and restores SQL and chart', async () => {
  const host = await open('lines');
  write('SELECT 1');
  await run();
  await press('Save as CSV');
  expect(host.asked).toContain(querySave.method);
  expect(host.getState()).toMatchObject({ view: { sql: 'SELECT 1' } });
  root = freshPage();
  await open('lines', host.getState());
  expect(textarea().value).toBe('SELECT 1');
});

it('shows texts of runs as text alone', async () => {
  await open('hostile');
  await run();
  expectTextAlone(root);
});

it('chooses columns that exist, and sorts points by x', () => {
  const result = {
    columns: ['name', 'step', 'value'].map(name => ({ name, type: '' })),
    rows: [
      ['a', 2, 0.5],
      ['a', 1, null],
      ['b', 3, 1],
      ['a', 0, 0.25],
    ],
    truncated: false,
    seconds: 0,
    notes: [],
  };
  const none = { x: '', y: '', series: '' };
  expect(chartColumns(result, none)).toEqual({ x: 0, y: 1, series: null });
  expect(chartColumns(result, { x: 'step', y: 'value', series: '-' })).toEqual({ x: 1, y: 2, series: null });
  const shown = chartColumns(result, { ...none, x: 'step' })!;
  expect(shown).toEqual({ x: 1, y: 2, series: 0 });
  expect(seriesOf(result, shown)).toEqual([
    {
      label: 'a',
      points: [
        { x: 0, y: 0.25 },
        { x: 2, y: 0.5 },
      ],
    },
    { label: 'b', points: [{ x: 3, y: 1 }] },
  ]);
  expect(chartColumns({ ...result, columns: [result.columns[0]], rows: [['a']] }, none)).toBeNull();
});
