// Advantage estimators of the workspace: one that re-implements GRPO gives the run of the built-in one to the bit, also
// over a resume; a saved edit applies from the next step; faults end the run with a sentence and not the trainer.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import { placeEvents } from '../../../../extension/run-data/event-marks';
import { train } from '../../../../extension/trainer/loop/train';
import { HeldEpisodes } from '../../../support/held-episodes';
import { openHere, resumedHere, wordsRun } from '../../../support/opened-run';
import { document, readRun, results } from '../../../support/terminal';
import { groupOverrides, stepOverrides } from '../../../support/tiny-overrides';
import { trainHere } from '../../../support/train-here';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeEach(() => (workspace = makeWorkspace()));
afterEach(() => workspace.remove());
afterAll(() => rmSync(installation.cache, { recursive: true, force: true }));

/** An estimator's file with a body of `estimate`. */
const estimator = (body: string): string => `import { defineEstimator } from 'ragen-workbench/api/plugins/estimator';

export default defineEstimator({
  name: 'own',
  estimate({ scores, groups, masks, sequences }, settings) {
    ${body}
  },
});
`;

/** GRPO, written anew. */
const grpo = estimator(`const samples = Array.from(scores, (score, sample) => {
      const group = Array.from(scores).filter((_, other) => groups[other] === groups[sample]);
      const shift = group.reduce((sum, x) => sum + (x - group[0]), 0) / group.length;
      const mean = group[0] + shift;
      const squares = group.reduce((sum, x) => sum + (x - group[0] - shift) ** 2, 0);
      const std = Math.sqrt(squares / (group.length - 1));
      return (score - mean) / (std + 1e-6);
    });
    return { samples };`);
const path = 'plugins/own.ts';
const ownEstimator = [`algorithm.adv_estimator=${path}`];

test('an estimator that re-implements GRPO gives the run of the built-in one to the bit', async () => {
  workspace.write(path, grpo);
  const builtIn = await trainHere(workspace, []);
  const own = await trainHere(workspace, ownEstimator);
  expect(results(own.folder)).toEqual(results(builtIn.folder));
  expect(own.lines.some(line => Number(line['critic/advantages/max']) > 0)).toBe(true);
  const [{ version }] = readRun(own.folder)
    .checkpoints.slice(-1)
    .map(name => {
      const manifest = JSON.parse(readFileSync(join(own.folder, 'checkpoints', name, 'checkpoint.json'), 'utf8')) as {
        state: { plugins: Record<string, string> };
      };
      return { version: manifest.state.plugins[path] };
    });
  expect(readFileSync(join(own.folder, 'plugins', version, 'sources/own.ts'), 'utf8')).toBe(grpo);
  expect(existsSync(join(builtIn.folder, 'plugins'))).toBe(false);
}, 120_000);

test('an estimate per turn and one per token are spread like those of the built-in estimators', async () => {
  const turns = ['agent_proxy.use_turn_scores=true', 'algorithm.high_level_gamma=1'];
  workspace.write(
    path,
    estimator(`// the return of a turn, compared with the returns of all turns of its group
    const returns = sequences.map(({ rewards, turnEnds }) =>
      turnEnds.map((_, turn) => {
        let sum = 0;
        for (let t = turnEnds.length - 1; t >= turn; t--) {
          const from = t === 0 ? 0 : turnEnds[t - 1] + 1;
          sum = rewards.subarray(from, turnEnds[t] + 1).reduce((a, b) => a + b, 0) + settings.high_level_gamma * sum;
        }
        return sum;
      }),
    );
    return {
      turns: returns.map((row, i) => {
        const all = returns.flatMap((other, j) => (sequences[j].group === sequences[i].group ? other : []));
        const shift = all.reduce((sum, x) => sum + (x - all[0]), 0) / all.length;
        const squares = all.reduce((sum, x) => sum + (x - all[0] - shift) ** 2, 0);
        const std = Math.sqrt(squares / (all.length - 1));
        return row.map(x => (x - (all[0] + shift)) / (std + 1e-6));
      }),
    };`),
  );
  const builtIn = await trainHere(workspace, turns);
  const own = await trainHere(workspace, [...turns, ...ownEstimator]);
  expect(results(own.folder)).toEqual(results(builtIn.folder));

  workspace.write(
    path,
    estimator(`const arpo = Float32Array.from(scores);
    return { tokens: masks.map((mask, i) => Float32Array.from(mask, bit => (bit ? arpo[i] : 0))) };`),
  );
  const arpo = await trainHere(workspace, ['algorithm.adv_estimator=arpo']);
  const tokens = await trainHere(workspace, ownEstimator);
  expect(results(tokens.folder)).toEqual(results(arpo.folder));
}, 180_000);

test('a resumed run computes what an uninterrupted one computes', async () => {
  workspace.write(path, grpo);
  const complete = await trainHere(workspace, ownEstimator, 3);
  const { folder, second } = await resumedHere(workspace, ownEstimator, 3);
  const { metrics, weights } = results(folder.path);
  expect({ metrics, weights }).toEqual({
    metrics: results(complete.folder).metrics,
    weights: results(complete.folder).weights,
  });
  expect(second.events.some(({ kind }) => kind === 'plugin_version')).toBe(false);

  workspace.write(path, grpo.replace('1e-6', '1e-5'));
  const third = await openHere(folder, workspace);
  await third.close();
  expect(third.events.filter(({ kind }) => kind === 'plugin_version').map(({ data }) => data)).toEqual([
    { plugin: path, from: second.run.plugins.versions[path], to: third.run.plugins.versions[path] },
  ]);
}, 180_000);

test('a saved edit applies from the next step on, and refused code leaves the running version in use', async () => {
  const file = workspace.write(path, grpo);
  const save = (text: string) => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  };
  const held = new HeldEpisodes(workspace.folder);
  held.set('train');
  const folder = await wordsRun(workspace, [...ownEstimator, ...held.overrides]);
  const { run, state, next, events, close } = await openHere(folder, workspace);
  const from = run.plugins.versions[path];
  const trained = train(run, state);
  await held.reached('train');
  const refused = next('plugin_refused');
  save(grpo.replace('(std + 1e-6)', "(std + 'a')").replace('group.length - 1', 'group.size - 1'));
  const { message, data } = await refused;
  expect(message).toContain(`${path} keeps version ${from.slice(0, 8)}`);
  expect(data).toMatchObject({
    plugin: path,
    version: from,
    problems: [
      { file, line: 11, kind: 'type' },
      { line: 12, kind: 'type' },
    ],
  });
  const mended = next('plugin_mended');
  save(grpo.replace('return { samples };', 'return { samples: samples.map(() => 0.25) };'));
  await mended;
  expect(run.plugins.versions[path]).toBe(from); // until the step ends
  held.release('train');
  expect(await trained).toBe('finished');
  const to = run.plugins.versions[path];
  await close();
  const reloads = events.filter(({ kind }) => kind === 'plugin_reload');
  expect(reloads.map(each => each.data)).toEqual([{ plugin: path, from, to, step: 2 }]);
  expect(placeEvents(reloads).map(({ mark, step }) => [mark, step])).toEqual([['version', 2]]);
  const { metrics } = readRun(folder.path);
  expect(metrics.map(line => line['critic/advantages/max'] === 0.25)).toEqual([false, true]);
}, 120_000);

describe('an estimator that fails ends the run with one sentence', () => {
  const place = (line: number) => `plug-in ${path} (${join(workspace.folder, path)}:${line})`;
  test.each([
    ['throws', 'throw new Error(`no scores in ${masks.length} samples`);', () => `${place(6)} threw "no scores in`],
    ['returns NaN', 'return { samples: scores.map(() => NaN) };', () => `returned NaN for sample 0 in estimate()`],
    ['has no result', 'return undefined as never;', () => `plug-in ${path} returned undefined in estimate(): return`],
    ['never returns', 'for (;;) settings.step++;', () => `did not return within 300 ms in estimate(): make`],
    ['ends its process', 'process.exit(3);', () => `ended its process (exit code 3) in estimate(): throw`],
    [
      'fills the memory',
      'const all: Float64Array[] = []; for (;;) all.push(new Float64Array(1e6).fill(1));',
      () => `plug-in ${path} exceeded the memory limit of 512 MiB in estimate(): reduce`,
    ],
  ])('%s', { timeout: 120_000 }, async (name, body, sentence) => {
    workspace.write(path, estimator(body));
    const limit =
      name === 'never returns' ? ['workbench.plugins.timeout_ms=300'] : ['workbench.max_environment_memory_gb=0.5'];
    await expect(trainHere(workspace, [...ownEstimator, ...limit, 'workbench.check_types=false'], 1)).rejects.toThrow(
      sentence(),
    );
  });

  test.each([
    ['is missing', undefined, 'the file of this plug-in does not exist: restore it'],
    ['does not build', 'export default {', `${path}:1:`],
    ['has a type error', grpo.replace('masks, sequences', 'masks, turns'), ":5:37 Property 'turns' does not exist"],
    ['has no definition', 'export const a = 1;', `plug-in ${path} has no default export: end the file with`],
    ['throws while it is loaded', `${grpo}\nthrow new Error('no');`, 'threw "no": fix the file and save it'],
  ])('%s', { timeout: 120_000 }, async (_, text, sentence) => {
    if (text !== undefined) workspace.write(path, text);
    await expect(trainHere(workspace, ownEstimator, 1)).rejects.toThrow(sentence);
  });
});

test('the terminal shows the sentence and ends with exit code 1', async () => {
  workspace.write(path, estimator('return { samples: masks.map(() => Infinity) };'));
  const args = ['train', '--config-name', 'words', ...stepOverrides(1), ...groupOverrides('val', [1]), ...ownEstimator];
  const { code, answer } = await document<{ error: { message: string } }>(workspace.folder, args);
  expect(code).toBe(1);
  expect(answer.error.message).toBe(
    `plug-in ${path} returned Infinity for sample 0 in estimate(): return finite numbers`,
  );
}, 120_000);
