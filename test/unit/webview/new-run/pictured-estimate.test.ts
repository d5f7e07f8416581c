// @vitest-environment happy-dom
// The estimate of New Run for a preset with pictures, from the plan to the page: the image tokens of a picture, and the
// remedy if a prompt cannot show the pictures of all turns.
import { render } from 'lit';
import { beforeEach, expect, it, vi } from 'vitest';
import { planRun } from '../../../../extension/trainer/plan/run-plan';
import { estimateView } from '../../../../webview/new-run/resource-estimate';
import { temporaryFolder } from '../../../support/temporary-folder';
import { freshPage } from '../page-host';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

const folder = temporaryFolder();
let root: HTMLElement;
beforeEach(() => (root = freshPage()));

/** Returns the texts of the estimate's paragraphs. */
async function shown(...overrides: string[]): Promise<string[]> {
  const request = { configName: 'quickstart-vision', overrides, presetFolders: ['media/presets'], workspace: folder() };
  const { run } = await planRun(request, 'plan');
  const planned = { values: {}, tags: [], engine: null, groups: { train: {}, val: {} }, problems: [] };
  render(estimateView({ ...planned, estimate: run, sweepRuns: null, yaml: '' }, false), root);
  return [...root.querySelectorAll('p')].map(({ textContent }) => textContent);
}

it('names the image tokens, without the place of the sentence', async () => {
  expect(await shown()).toContain(
    'custom_envs.QuickVisualLake: a picture of 112 × 112 pixels takes 16 image tokens, and 5 of them in a prompt take 80 of max_model_len 1024',
  );
  expect(root.querySelector('.estimate')!.textContent).not.toContain('config:');
  expect(root.querySelector('.estimate')!.textContent).toMatch(/\d+ MiB|GiB/);
});

it('says how to show more pictures', async () => {
  expect(await shown('actor_rollout_ref.rollout.max_model_len=120')).toContain(
    'custom_envs.QuickVisualLake: a picture of 112 × 112 pixels takes 16 image tokens, and 3 of them in a prompt take 48 of max_model_len 120; a prompt cannot show all 5 turns, and the oldest are left out: lower data.max_pixels or raise max_model_len to show more',
  );
});
