// The built-in reports pass the checks of `ragen plugin check`; documents that the renderers could not write are refused.
import { expect, test } from 'vitest';
import type { ReportDocument } from '../../../../envs/api/plugins/report';
import { PluginError } from '../../../../extension/plugins/client/plugin-runner';
import { builtInReports } from '../../../../extension/run-data/report/summary-report';
import { reportWith } from '../../../../extension/trainer/plugins/checked-report';
import type { CallablePlugin } from '../../../../extension/trainer/plugins/checked-values';
import { pluginTrials } from '../../../../extension/trainer/plugins/plugin-trials';

const returning = (report: (...args: never[]) => unknown): CallablePlugin => ({
  path: 'own.ts',
  description: { kind: 'report', name: 'own', functions: ['report'], properties: {} },
  call: (_, ...args) => Promise.resolve(structuredClone(report(...(structuredClone(args) as never[])))),
});

test.each(Object.entries(builtInReports))('%s passes the check of files', async (name, { report, ...definition }) => {
  expect(definition).toEqual({ kind: 'report', name });
  for (const { run } of pluginTrials.report) {
    const [two, none] = (await run(returning(report))) as ReportDocument[];
    expect(two.blocks).toContainEqual({ kind: 'charts', charts: expect.arrayContaining(['reward']) });
    expect(none.blocks).not.toContainEqual(expect.objectContaining({ kind: 'charts' }));
  }
});

const table = { kind: 'table', heads: ['a', 'b'], rows: [['1', '2']], numbers: [1] };

test.each([
  ['7', 7],
  ['an invalid blocks', { title: 'A' }],
  ['an invalid title', { title: '', blocks: [] }],
  ['an invalid blocks.0', { title: 'A', blocks: [{ ...table, rows: [['1']] }] }],
  ['an invalid blocks.0.rows.0.1', { title: 'A', blocks: [{ ...table, rows: [['1', 2]] }] }],
  ['episode 0 of run 0', { title: 'A', blocks: [{ kind: 'episode', run: 0, episode: 0 }] }],
  ['2000', { title: 'A', blocks: [{ kind: 'paragraph', text: 'x'.repeat(2e6) }] }],
])('a report that returns %s is refused', async (what, value) => {
  const refused = await reportWith(
    returning(() => value),
    [],
  ).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(PluginError);
  expect((refused as Error).message).toMatch(/^plug-in own\.ts returned .* in report\(\): return /);
  expect((refused as Error).message).toContain(what);
});

test('a valid document is returned as it is', async () => {
  const document = { title: 'A', blocks: [table, { kind: 'heading', level: 2, text: 'B' }] };
  expect(
    await reportWith(
      returning(() => document),
      [],
    ),
  ).toEqual(document);
});
