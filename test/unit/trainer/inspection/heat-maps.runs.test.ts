// Heat maps over the pictures of a run of ragen-tiny-vision. A thought that names the player's place depends on the player's
// tile; a guess depends on no tile as much. Equal weights give equal maps, and episodes record the true states.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Inspections } from '../../../../extension/vscode/processes/inspection-process';
import type { HeatMap, HeatMaps } from '../../../../extension/protocol/heat-maps';
import { maximum } from '../../../../extension/common/lists';
import type { Episode } from '../../../../extension/run-data/episode';
import { Inspector } from '../../../../extension/trainer/inspection/inspector';
import { installation } from '../../../../extension/node/installation';
import { document } from '../../../support/terminal';
import { keepAll, trainHere, type Trained } from '../../../support/train-here';
import { tinyOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, root, type Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
let run: Trained;
let inspector: Inspector;
beforeAll(async () => {
  workspace = makeWorkspace();
  const more = ['trainer.save_freq=1', 'workbench.keep_checkpoints=9', 'actor_rollout_ref.actor.optim.lr=1e-3'];
  const small = tinyOverrides({ groups: 6, turns: 3, tokens: 60, miniBatch: 12 });
  const overrides = [...small, 'model_path=ragen-tiny-vision', 'actor_rollout_ref.rollout.max_model_len=512'];
  run = await trainHere(workspace, [...overrides, ...keepAll, ...more], 2, undefined, 'quickstart-vision');
  inspector = new Inspector(1, { phase: () => undefined, whatIfTokens: () => undefined });
}, 120_000);
afterAll(async () => {
  await inspector.close();
  workspace.remove();
  rmSync(installation.cache, { recursive: true, force: true });
});

const ref = ({ mode, step, id }: Episode) => ({ folder: run.folder, mode, step, id });
const training = (): Episode[] => run.episodes.filter(({ mode }) => mode === 'train');
const strongest = ({ values }: HeatMap): number => values.indexOf(maximum(values));

describe('heat maps', () => {
  test('are strong where a thought says what the picture shows, and weak where it guesses', async () => {
    const seen: { most: number; cell: number; named: number[] }[] = [];
    const guessed: number[] = [];
    for (const episode of training().filter(({ step }) => step === 1)) {
      const { turns, checkpoint, part } = await inspector.heatMaps({ ...ref(episode), part: 'thought' });
      expect([checkpoint, part]).toEqual(['initial', 'thought']);
      turns.forEach(({ tokens, pictures, logprob, earlier }, i) => {
        const { thought, raw } = episode.turns[i];
        if (tokens === 0) return expect(/<\/think>/.test(raw)).toBe(false);
        expect(pictures).toMatchObject([{ rows: 4, columns: 4 }]);
        const [map] = pictures;
        expect(map.values).toHaveLength(16);
        expect(map.values.every(x => Number.isFinite(x) && x >= 0)).toBe(true);
        expect(logprob).toBeLessThan(0);
        if (i === 0) expect(earlier).toBe(0);
        else expect(earlier).toBeGreaterThan(0);
        const places = [...(thought ?? '').matchAll(/\((\d), (\d)\)/g)].map(([, row, column]) => 4 * +row + +column);
        if (places.length > 0) seen.push({ most: maximum(map.values), cell: strongest(map), named: places });
        else if (thought?.startsWith('I guess')) guessed.push(maximum(map.values));
      });
    }
    expect(seen.length).toBeGreaterThan(4);
    expect(guessed.length).toBeGreaterThan(4);
    const named = seen.filter(({ cell, named }) => named.includes(cell));
    expect(named.length / seen.length).toBeGreaterThan(0.6); // by chance, about a quarter
    const mean = (all: readonly number[]): number => all.reduce((sum, x) => sum + x, 0) / all.length;
    expect(mean(seen.map(({ most }) => most))).toBeGreaterThan(3 * mean(guessed));
  });

  test('depend on the weights alone, by default on those nearest to the weights that played', async () => {
    const [first] = training().filter(({ step }) => step === 2);
    const found = await inspector.heatMaps(ref(first));
    expect(found.checkpoint).toBe('step-000001');
    expect(await inspector.heatMaps({ ...ref(first), checkpoint: 'step-000001' })).toEqual(found);
    const initial = await inspector.heatMaps({ ...ref(first), checkpoint: 'initial' });
    expect(initial.turns.map(({ pictures }) => pictures)).not.toEqual(found.turns.map(({ pictures }) => pictures));
    const { tokens } = first;
    found.turns.forEach(({ logprob, tokens: count }, i) => {
      const [from, to] = first.turns[i].span;
      expect(count).toBe(to - from);
      expect(logprob).toBeCloseTo(
        tokens.logprobs.slice(from, to).reduce<number>((sum, x) => sum + x!, 0),
        3,
      );
    });
    const [one] = (await inspector.heatMaps({ ...ref(first), turn: 1 })).turns;
    expect(one).toEqual(found.turns[0]);
  });

  test('lie beside the true states, which episodes of a model that sees record', () => {
    for (const { turns } of training())
      for (const { true_state, executed, true_next_state } of turns) {
        expect(true_state).toMatch(/^(?:.{4}\n){3}.{4}$/);
        if (executed.length === 0) expect(true_next_state).toBe(true_state);
      }
  });

  test('of an episode without pictures, or of a turn that does not exist, are refused', async () => {
    const [first] = training();
    await expect(inspector.heatMaps({ ...ref(first), turn: 9 })).rejects.toThrow(
      `${first.id} has no turn 9: name a turn`,
    );
    const text = await trainHere(workspace, keepAll, 1);
    const episode = { folder: text.folder, mode: 'train' as const, step: 1, id: text.episodes[0].id };
    await expect(inspector.heatMaps(episode)).rejects.toThrow('show the model no pictures: choose an episode of');
  });

  test('are computed by ragen inspect and by the process that serves the editor', async () => {
    const [first] = training().filter(({ step }) => step === 2);
    const expected = await inspector.heatMaps({ ...ref(first), part: 'thought' });
    const { answer, code, stderr } = await document<HeatMaps>(workspace.folder, [
      ...['inspect', run.folder.split('/').at(-1)!, first.id, '--heat-map', 'thought', '--threads', '1'],
    ]);
    expect(code, stderr).toBe(0);
    expect(answer).toEqual(expected);
    const node = { path: process.execPath, version: process.versions.node, electron: false };
    const inspections = new Inspections({
      cliFor: async cwd => ({ node, cli: join(root, 'dist/cli.cjs'), cwd }),
      refusal: () => undefined,
      log: () => undefined,
    });
    const phases: string[] = [];
    const onPhase = (words: string): void => void phases.push(words);
    expect(await inspections.heatMaps({ ...ref(first), part: 'thought' }, { onPhase })).toEqual(expected);
    expect(phases[0]).toBe('loading step-000001');
    expect(phases[1]).toBe(`mapping turn 1 of ${first.id} under step-000001`);
    inspections.dispose();
  });
});
