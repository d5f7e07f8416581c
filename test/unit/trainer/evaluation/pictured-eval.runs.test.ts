// `ragen eval` of a model folder on pictures: episodes record what the model was shown, each picture is stored once, equal
// seeds give equal episodes, and heat maps explain the answers of the evaluated model.
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HeatMaps } from '../../../../extension/protocol/heat-maps';
import type { EvaluationSummary } from '../../../../extension/trainer/evaluation/evaluation-summary';
import { document, killAll, readRun } from '../../../support/terminal';
import { groupOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, root, type Workspace } from '../../../support/workspace';

interface Answer {
  run: string;
  folder: string;
  evaluation: EvaluationSummary;
}

let workspace: Workspace;
beforeAll(() => {
  workspace = makeWorkspace();
  cpSync(join(root, 'media/models/ragen-tiny-vision'), join(workspace.folder, 'models/seeing'), { recursive: true });
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

test('a model folder that sees is evaluated on pictures', async () => {
  const evaluate = async (): Promise<Answer> => {
    const { code, answer, stderr } = await document<Answer>(workspace.folder, [
      ...['eval', '--config-name', 'quickstart-vision', '--model', 'models/seeing'],
      ...groupOverrides('val', [24], 2),
    ]);
    expect(code, stderr).toBe(0);
    return answer;
  };
  const { run, folder, evaluation } = await evaluate();
  expect(evaluation.overall.episodes).toBe(48);
  expect(evaluation.overall.success!.mean).toBeGreaterThan(0.05);
  expect(evaluation.overall.success!.mean).toBeLessThan(0.7);

  const { episodes } = readRun(folder);
  const named = new Set<string>();
  for (const { turns, final_pictures, tokens } of episodes) {
    const shown = turns.flatMap(({ pictures = [] }) => pictures);
    expect(shown).toHaveLength(turns.length);
    expect(tokens.pictures!.map(({ picture }) => picture)).toEqual(shown);
    expect(turns.every(({ true_state }) => true_state?.includes('P') ?? false)).toBe(true);
    for (const name of [...shown, ...(final_pictures ?? [])]) named.add(name!);
  }
  expect(readdirSync(join(folder, 'pictures')).sort()).toEqual([...named].sort());

  const seen = episodes.find(({ turns }) => turns[0].thought?.startsWith('Me ('))!;
  const maps = await document<HeatMaps>(workspace.folder, ['inspect', run, seen.id, '--heat-map', '--turn', '1']);
  expect(maps.code, maps.stderr).toBe(0);
  expect(maps.answer).toMatchObject({
    checkpoint: 'initial',
    turns: [{ turn: 1, pictures: [{ rows: 4, columns: 4 }] }],
  });

  const again = readRun((await evaluate()).folder).episodes;
  const played = (all: typeof episodes) => all.map(({ id, turns, tokens }) => ({ id, turns, ids: tokens.ids }));
  expect(played(again)).toEqual(played(episodes));
}, 240_000);
