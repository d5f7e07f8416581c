// A run's diagnoses as read by the host, from a stored run restored into a folder.
import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { collapseSettings } from '../../../../extension/run-data/collapse-settings';
import { promptGroups } from '../../../../extension/vscode/run-files/episodes/prompt-groups';
import { RunDiagnostics } from '../../../../extension/vscode/run-files/run-diagnostics';
import { RunReader } from '../../../../extension/vscode/run-files/run-reader';
import { restoreRun } from '../../../e2e/fixtures/stored-run.mjs';

const workspace = mkdtempSync(join(tmpdir(), 'diagnostics-'));
afterAll(() => rmSync(workspace, { recursive: true, force: true }));
const folder = restoreRun(workspace, 'diagnosed-run');
const diagnostics = new RunDiagnostics(folder);

describe('a run’s diagnoses', () => {
  it('are listed by file and read one at a time', async () => {
    expect(await diagnostics.steps()).toEqual({ gradients: [1, 2, 3], groups: [1, 3] });
    const family = await diagnostics.family(2, 'collapse_turn_sample');
    expect(family?.samples).toHaveLength(48);
    expect(await diagnostics.family(2, 'collapse_nothing')).toBeNull();
    expect(await diagnostics.family(7, 'collapse_turn_sample')).toBeNull();
    expect((await diagnostics.gradients(3))?.analyses.map(({ name }) => name)).toEqual([
      'grad_norm',
      'grad_norm_prefilter',
    ]);
    expect(await diagnostics.gradients(4)).toBeNull();
  });

  it('count as missing when a file is torn', async () => {
    writeFileSync(join(folder, 'diagnostics/collapse-000004.json'), '{"step":4,"fam');
    expect(await diagnostics.family(4, 'collapse_turn_sample')).toBeNull();
    unlinkSync(join(folder, 'diagnostics/collapse-000004.json'));
  });

  it('have no steps in a folder without any', async () => {
    expect(await new RunDiagnostics(workspace).steps()).toEqual({ gradients: [], groups: [] });
  });
});

describe('prompt groups', () => {
  it('come from the episodes, and agree with the groups file', async () => {
    const rows = await new RunReader(folder).episodeRows({ step: 3, mode: 'train' });
    const groups = promptGroups(rows, [])!;
    const table = await diagnostics.groupRows(3);
    expect(groups).toHaveLength(12);
    for (const { group_id, scores, selected } of table) {
      const group = groups.find(other => other.group_id === group_id)!;
      expect(group.kept).toBe(selected);
      group.episodes.forEach(({ score }, i) => expect(score).toBeCloseTo(scores[i], 5));
    }
    expect(groups[0].episodes[3]).toMatchObject({ id: 'train-000003-g000-m03', member: 3 });
  });

  it('come from the groups file when the episodes are gone', async () => {
    const groups = promptGroups([], await diagnostics.groupRows(3))!;
    expect(groups).toHaveLength(12);
    expect(groups[0].episodes[0]).toMatchObject({ id: null, success: null, tokens: null });
    expect(promptGroups([], [])).toBeNull();
  });
});

describe('settings', () => {
  it('come from the manifest', async () => {
    expect(await diagnostics.settings()).toMatchObject({
      first_turn: true,
      turn_uniform: true,
      compute_freq: 1,
      gradients: true,
      filter: { strategy: 'top_p', value: 0.9, include_zero: false, normalised: false, dynamic_sampling: false },
    });
  });

  it('count as off when a manifest lacks them', () => {
    for (const manifest of [undefined, {}, { config: {} }, { config: { actor_rollout_ref: { rollout: 7 } } }])
      expect(collapseSettings(manifest)).toMatchObject({ first_turn: false, gradients: false, filter: null });
  });
});
