// `ragen report --with` prints the text of a report plug-in about runs, without control characters, writes its document, and
// reports faults.
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { document, ragen, readRun } from '../../../support/terminal';
import { groupOverrides, stepOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, root } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
let run: string;
beforeAll(async () => {
  workspace = makeWorkspace();
  mkdirSync(join(workspace.folder, 'plugins'));
  const short = [...stepOverrides(2), 'trainer.test_freq=-1', ...groupOverrides('val', [1])];
  const { answer } = await document<{ folder: string }>(workspace.folder, [
    'train',
    '--config-name',
    'words',
    ...short,
  ]);
  run = answer.folder;
}, 120_000);
afterAll(() => workspace.remove());

const write = (body: string, kind = 'Report', name = 'report'): string => {
  workspace.write(
    'plugins/own.ts',
    `import { define${kind} } from 'ragen-workbench/api/plugins/${kind.toLowerCase()}';
export default define${kind}({ name: 'own', ${name}: ${body} });
`,
  );
  return 'plugins/own.ts';
};
const print = (file: string) => ragen(workspace.folder, ['report', basename(run), '--with', file]);

test('the example prints a table with the best step of the run', async () => {
  copyFileSync(join(root, 'examples/plugins/best_steps.ts'), join(workspace.folder, 'plugins/best_steps.ts'));
  const key = 'train/charts/avg_episode_return';
  const { metrics } = readRun(run);
  const best = Math.max(...metrics.map(line => Number(line[key])));
  const args = ['report', basename(run), '--with', 'plugins/best_steps.ts'];
  const { answer } = await document<{ runs: string[]; text: string }>(workspace.folder, args);
  expect(answer.runs).toEqual([basename(run)]);
  expect(answer.text.split('\n')).toEqual([
    '| run | estimator | best return | at step |',
    '|---|---|---|---|',
    `| words | grpo | ${best.toFixed(3)} | ${metrics.find(line => line[key] === best)!.step} |`,
  ]);
}, 60_000);

test('a document is written with its charts and episodes, as the built-in report is', async () => {
  const file = write(`([{ name, episodes }]) => ({ title: 'Own <report>', blocks: [
    { kind: 'paragraph', text: name },
    { kind: 'charts', charts: ['train/charts/avg_episode_return', 'no/such/metric'] },
    { kind: 'episode', run: 0, episode: episodes.length - 1 },
  ] })`);
  const args = ['report', basename(run), '--format', 'markdown', '--with', file];
  const { answer } = await document<{ file: string; pictures: number }>(workspace.folder, args);
  expect(answer.pictures).toBe(1);
  const text = readFileSync(answer.file, 'utf8');
  expect(text).toMatch(/^# Own &lt;report&gt;\n\nwords\n\n!\[/);
  expect(text).toContain('##### Turn 1 of');
  const summary = [...args.slice(0, -1), 'summary', '--force'];
  const { answer: builtIn } = await document<typeof answer>(workspace.folder, summary);
  expect(builtIn.pictures).toBeGreaterThan(1);
  expect(readFileSync(builtIn.file, 'utf8')).toContain('## Configuration');
}, 120_000);

test('control characters are removed, and faults are one sentence with exit code 1', async () => {
  const { stdout } = await print(write('([run]) => `\\u001b[2J${run.events.length > 0}\\t${run.metrics.length}`'));
  expect(stdout).toBe('[2Jtrue\t2\n');
  const { code, stderr } = await print(write('() => JSON.parse("7") as string'));
  expect([code, stderr]).toEqual([1, expect.stringContaining('returned 7 in report(): return a text')]);
  expect((await print(write('() => 1', 'Metric', 'measure'))).stderr).toContain(
    'defines a plug-in of the kind metric, but --with needs the kind report: name another file',
  );
  expect((await print('plugins/own.js')).stderr).toContain('give the path of a plug-in, which ends in .ts');
}, 120_000);
