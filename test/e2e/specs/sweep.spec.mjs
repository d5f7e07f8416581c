// RAGEN: Run Sweep… with real trainers: a sweep file is started, the page fills in, the sweep is stopped and continued
// from the page, and the arms are compared. The page is restored after a reload.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';

const workspace = makeWorkspace({
  'config/sweeps/rates.yaml': `# Which learning rate?
config_name: quickstart
overrides:
  - trainer.total_training_steps=2
  - trainer.val_before_train=false
  - trainer.test_freq=1
  - es_manager.train.env_groups=2
  - es_manager.train.env_configs.n_groups=[2]
  - es_manager.val.env_groups=8
  - es_manager.val.env_configs.n_groups=[8]
  - ppo_mini_batch_size=8
  - micro_batch_size_per_gpu=8
  - log_prob_micro_batch_size_per_gpu=8
  - workbench.threads=1
grid:
  actor_rollout_ref.actor.optim.lr: [0.0001, 0.001]
seeds: [1, 2, 3]
`,
});
const indexFile = join(workspace, '.ragen', 'sweeps', 'rates', 'sweep.json');
const index = () => (existsSync(indexFile) ? JSON.parse(readFileSync(indexFile, 'utf8')) : undefined);
const limit = 400_000;
let editor;
const scenario = scenarios(() => editor);

before(async () => {
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

/** The Sweep page. */
const page = () => editor.webview('.sweep-page');
const cells = (frame, standing) => frame.locator(`.cell .status[data-standing="${standing}"]`);

scenario('a sweep file starts from the palette, and the page shows its runs', async () => {
  await editor.command('RAGEN: Run Sweep');
  await editor.page.locator('.quick-input-list .monaco-list-row', { hasText: 'claim_1_collapse' }).waitFor();
  await editor.choose('Which learning rate?');
  await editor.answer('trainer.test_freq');
  await editor.page.locator('.quick-input-message', { hasText: 'is not an override' }).waitFor();
  await editor.answer('trainer.project_name=by-palette');
  const frame = await page();
  await frame.locator('.sweep-grid tbody tr').nth(1).waitFor();
  assert.equal(await frame.locator('.sweep-grid tbody tr').count(), 2);
  assert.equal(await frame.locator('.cell').count(), 6);
  await cells(frame, 'running').first().waitFor({ timeout: limit });
  await frame
    .locator('[role=status]', { hasText: /^Running, at most \d+ runs? at a time · \d of 6 runs finished/ })
    .waitFor();
  await editor.picture('sweep-live-dark');
  assert.deepEqual(index().overrides, ['trainer.project_name=by-palette']);
});

scenario('the page stops the sweep with checkpoints, and continues it', async () => {
  let frame = await page();
  await frame.getByRole('button', { name: 'Stop', exact: true }).click();
  await frame.getByRole('button', { name: 'Continue' }).waitFor({ timeout: limit });
  assert.equal(index().runner, null);
  const started = index().members.filter(({ run }) => run !== null).length;
  assert.ok(started < 6, `${started} runs were started before the stop`);
  await editor.picture('sweep-stopped-dark');
  await frame.getByRole('button', { name: 'Continue' }).click();
  await frame.getByRole('button', { name: 'Stop', exact: true }).waitFor({ timeout: limit });
  await frame.getByRole('button', { name: 'Open file' }).click(); // the file hides the page
  await editor.page.getByRole('tab', { name: /rates\.yaml/ }).waitFor();
  const toast = editor.page.locator('.notification-toast', { hasText: 'Sweep rates has ended: 6 of 6 runs finished.' });
  await toast.waitFor({ timeout: limit });
  assert.equal(await editor.page.locator('.notification-toast', { hasText: 'finished after 2 steps' }).count(), 0);
  await toast.getByRole('button', { name: 'Show' }).click();
  frame = await page();
  await frame.locator('[role=status]', { hasText: /^Finished · 6 of 6 runs finished/ }).waitFor();
  assert.deepEqual(
    index().members.map(({ seed }) => seed),
    [1, 2, 3, 1, 2, 3],
  );
  await frame.locator('.difference-facts', { hasText: 'effect size' }).waitFor();
  assert.match(await frame.locator('.sweep-grid tbody td.number').first().innerText(), / ± /);
});

scenario('the page is restored after a reload, and a cell opens the dashboard of its run', async () => {
  await editor.picture('sweep-finished-dark');
  await editor.keep('sweep-dark');
  await editor.theme('light');
  await editor.keep('sweep-light');
  await editor.theme('dark');
  await editor.reload();
  const frame = await page();
  await frame.locator('[role=status]', { hasText: '6 of 6 runs finished' }).waitFor();
  await editor.page.setViewportSize({ width: 600, height: 900 });
  await editor.picture('sweep-600-dark');
  await editor.page.setViewportSize({ width: 1440, height: 900 });
  await frame.locator('button.cell').first().click();
  const dashboard = await editor.webview('.charts');
  await until('the run’s name', async () => (await dashboard.locator('h1').first().innerText()).includes('seed 1'));
});

scenario('a finished sweep is listed with its progress, and opens its page', async () => {
  await editor.command('RAGEN: Run Sweep');
  await editor.choose('6 of 6 runs finished');
  const frame = await page();
  assert.equal(await frame.getByRole('button', { name: 'Continue' }).count(), 0);
});
