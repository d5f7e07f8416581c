// Environments edited during training: a save during a rollout applies to the next episodes, an error is reported with
// its location and leaves the running code unchanged, and a resume reports changed code.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { coverageLineSchema } from '../../../../extension/run-data/environment-snapshot';
import { placeEvents } from '../../../../extension/run-data/event-marks';
import { environmentRefusedSchema, environmentReloadSchema } from '../../../../extension/run-data/run-events';
import type { RunEvent } from '../../../../extension/run-data/run-events';
import type { VersionEffect } from '../../../../extension/run-data/version-effect';
import { installation } from '../../../../extension/node/installation';
import { Journal } from '../../../../extension/trainer/run/journal';
import { RunControl } from '../../../../extension/trainer/run/run-control';
import { newestValid } from '../../../../extension/trainer/store/newest-checkpoint';
import type { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { makeRun } from '../../../../extension/cli/run-lifecycle/make-run';
import { train } from '../../../../extension/trainer/loop/train';
import { HeldEpisodes } from '../../../support/held-episodes';
import { document, readRun } from '../../../support/terminal';
import { groupOverrides, stepOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, wordsEnvironment } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';
import { openRun } from '../../../../extension/trainer/run/open-run';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
let source: string;
let held: HeldEpisodes;
beforeEach(() => {
  workspace = makeWorkspace();
  source = join(workspace.folder, 'environments/words.ts');
  held = new HeldEpisodes(workspace.folder);
});
afterEach(() => workspace.remove());
afterAll(() => rmSync(installation.cache, { recursive: true, force: true }));

const makeFolder = async (overrides: string[] = []): Promise<RunFolder> =>
  (
    await makeRun({
      configName: 'words',
      overrides: [
        ...[...stepOverrides(2), 'trainer.test_freq=-1', ...groupOverrides('val', [1])],
        ...held.overrides,
        ...overrides,
      ],
      workspace: workspace.folder,
    })
  ).folder;

/** Opens the run and records its events. */
async function open(folder: RunFolder) {
  const events: RunEvent[] = [];
  const listeners: ((event: RunEvent) => void)[] = [];
  const watchers = {
    status: () => undefined,
    appended: () => undefined,
    event: (event: RunEvent) => {
      events.push(event);
      for (const listener of listeners) listener(event);
    },
  };
  const status = {
    ...{ state: 'running' as const, step: 0, total_steps: 2, success: null, reward: null },
    ...{ tokens_per_s: null, eta_s: null, phase: 'idle', updated: new Date().toISOString() },
  };
  const journal = new Journal(folder, watchers, status, 0);
  const control = new RunControl(() => undefined);
  const checkpoint = (await newestValid(folder.path)).checkpoint;
  const { run, state } = await openRun({ folder, workspace: workspace.folder, checkpoint, control, journal });
  /** Resolves to the next event of a kind after this call. */
  const next = (kind: RunEvent['kind']) =>
    new Promise<RunEvent>(resolve => listeners.push(event => event.kind === kind && resolve(event)));
  const close = async () => {
    await run.close();
    await journal.close();
  };
  return { run, state, events, next, close };
}
/** Saves as editors do, by renaming a new file over the old one. */
const save = (text: string) => {
  writeFileSync(`${source}.new`, text);
  renameSync(`${source}.new`, source);
};

/** A statement without effect that changes the code. */
const other = `if (action === 'never') throw new Error();`;

test('after a save during a rollout, running episodes finish with the old code, and later episodes use the new code', async () => {
  held.set('train');
  const folder = await makeFolder();
  const { run, state, next, close } = await open(folder);
  const trained = train(run, state);
  await held.reached('train');
  const [{ version: from }] = run.environments.current;
  const reload = next('environment_reload');
  save(wordsEnvironment(other).replace('(length % 5) / 2', '7'));
  const { message, data } = await reload;
  const [{ version: to }] = run.environments.current;
  expect(environmentReloadSchema.parse(data)).toMatchObject({ tag: 'Words', from, to, files: [source], step: 1 });
  expect(message).toContain(join('environments', 'words.ts'));
  held.release('train');
  expect(await trained).toBe('finished');
  await close();
  const { episodes, events } = readRun(folder.path);
  const versions = (step: number) => [
    ...new Set(episodes.filter(e => e.step === step).map(e => e.environment.version)),
  ];
  expect(versions(1)).toEqual([from]);
  expect(versions(2)).toEqual([to]);
  const rewards = episodes.filter(({ step }) => step === 2).flatMap(({ turns }) => turns.map(({ reward }) => reward));
  expect(rewards.every(reward => reward % 7 === 0)).toBe(true);
  expect(rewards).toContain(7);
  for (const version of [from, to]) {
    const kept = readFileSync(join(folder.path, 'environments', version, 'sources/words.ts'), 'utf8');
    expect(kept.includes('reward: 7')).toBe(version === to);
  }
  expect(events.filter(({ kind }) => kind === 'environment_reload')).toHaveLength(1);
  expect(events.filter(({ kind }) => kind === 'environment_ran').map(each => each.data)).toEqual([
    { tag: 'Words', version: to, step: 2 },
  ]);
  expect(placeEvents(events).flatMap(({ mark, step }) => (mark === 'version' ? [step] : []))).toEqual([2]);

  const { answer: listed } = await document<
    { version: string; from: number; sources: string[]; effect: VersionEffect | null }[]
  >(workspace.folder, ['env', 'versions', folder.id]);
  expect(listed.map(({ version, from, sources }) => [version, from, sources])).toEqual([
    [from, 1, ['words.ts']],
    [to, 2, ['words.ts']], // the first step whose episodes ran it
  ]);
  const mean = (step: number) => {
    const played = episodes.filter(e => e.step === step && e.mode === 'train');
    return played.reduce((sum, { reward }) => sum + reward, 0) / played.length;
  };
  expect(listed[0].effect).toBeNull();
  expect(listed[1].effect!.reward.before.mean).toBeCloseTo(mean(1), 9);
  expect(listed[1].effect!.reward.after.mean).toBeCloseTo(mean(2), 9);
});

test('errors are reported with their locations and cleared by the next valid save; a burst of saves ends with the last', async () => {
  const { run, state, next, events, close } = await open(await makeFolder());
  run.environments.watch();
  const [{ version }] = run.environments.current;
  const refused = next('environment_refused');
  save(wordsEnvironment().replace("instruction: 'Say a word.'", 'instruction: 7, legend: 8'));
  const { data, message } = await refused;
  const { problems, ...about } = environmentRefusedSchema.parse(data);
  expect(about).toEqual({ tag: 'Words', version });
  expect(problems.map(({ file, line, kind }) => [file, line, kind])).toEqual([
    [source, 8, 'type'],
    [source, 8, 'type'],
    [source, 1, 'load'],
  ]);
  expect(message).toContain('(and 2 more)');
  expect(run.environments.current[0].version).toBe(version);

  const gone = next('environment_refused');
  rmSync(source);
  expect(environmentRefusedSchema.parse((await gone).data).problems).toMatchObject([{ file: source, kind: 'build' }]);

  const mended = next('environment_mended');
  save(wordsEnvironment());
  expect((await mended).data).toEqual({ tag: 'Words' });

  for (let i = 0; i < 20; i++) save(wordsEnvironment(`if (action === 'never ${i}') throw new Error();`));
  await expect.poll(() => events.some(({ kind }) => kind === 'environment_reload'), { timeout: 20_000 }).toBe(true);
  await expect.poll(() => run.environments.current[0].bundle.includes('never 19'), { timeout: 20_000 }).toBe(true);
  expect(events.filter(({ kind }) => kind === 'environment_reload').length).toBeLessThan(10);
  expect(state.step).toBe(0);
  await close();
});

test('with live_edit off, saves are ignored', async () => {
  held.set('train');
  const folder = await makeFolder(['workbench.live_edit=false']);
  const { run, state, events, close } = await open(folder);
  const watch = vi.spyOn(run.environments, 'watch');
  const [{ version }] = run.environments.current;
  const trained = train(run, state);
  await held.reached('train');
  save(wordsEnvironment(other));
  held.release('train');
  expect(await trained).toBe('finished');
  await close();
  expect(watch).not.toHaveBeenCalled();
  expect(events.map(({ kind }) => kind).filter(kind => kind.startsWith('environment'))).toEqual([]);
  const { episodes } = readRun(folder.path);
  expect([...new Set(episodes.map(({ environment }) => environment.version))]).toEqual([version]);
});

test("a resume runs the code on disk and reports where it differs from the checkpoint's", async () => {
  const folder = await makeFolder(['trainer.save_freq=1', 'trainer.total_training_steps=1']);
  const first = await open(folder);
  await train(first.run, first.state);
  const from = first.run.environments.current[0].version;
  await first.close();
  save(wordsEnvironment(other));
  const second = await open(folder);
  const to = second.run.environments.current[0].version;
  await second.close();
  expect(to).not.toBe(from);
  expect(second.events.filter(({ kind }) => kind === 'environment_version').map(({ data }) => data)).toEqual([
    { tag: 'Words', from, to },
  ]);
  expect(first.events.some(({ kind }) => kind === 'environment_version')).toBe(false);
});

test('lines executed by the episodes of each step are recorded beside the code, without effect on the run', async () => {
  const [plain, counted] = [await makeFolder(), await makeFolder(['workbench.coverage=true'])];
  for (const folder of [plain, counted]) {
    const { run, state, close } = await open(folder);
    await train(run, state);
    await close();
  }
  const rewards = (folder: RunFolder) => readRun(folder.path).episodes.map(({ id, reward }) => [id, reward]);
  expect(rewards(counted)).toEqual(rewards(plain));
  const [{ version }] = counted.manifest.environments;
  const file = (folder: RunFolder) => join(folder.path, 'environments', version, 'coverage.jsonl');
  expect(existsSync(file(plain))).toBe(false);
  const lines = readFileSync(file(counted), 'utf8')
    .trim()
    .split('\n')
    .map(line => coverageLineSchema.parse(JSON.parse(line)));
  expect(lines.map(({ step }) => step)).toEqual([1, 2]);
  const text = wordsEnvironment().split('\n');
  const resets = 1 + text.findIndex(line => line.includes('= options'));
  for (const { files } of lines) {
    const [, most] = files['words.ts'].find(([line]) => line === resets)!;
    expect(most).toBeGreaterThanOrEqual(8); // one reset per episode of 2 × 4
  }
});
