// The Timeline page in the real editor, on a real run: it follows the run while it trains; afterwards, a step is opened
// down to an episode and to what the episode waited for.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, onlyEntry, scenarios, until } from '../editor.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
let editor;
const scenario = scenarios(() => editor);
before(async () => (editor = await Editor.start(workspace)));
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const runs = join(workspace, '.ragen', 'runs');
const folder = () => onlyEntry(runs);
const status = () => JSON.parse(readFileSync(join(folder(), 'status.json'), 'utf8'));
const page = () => editor.webview('.timeline-bar');
const bars = async () => (await page()).locator('#marked-step').innerText();
const small =
  'trainer.total_training_steps=1000 trainer.val_before_train=false trainer.test_freq=-1 workbench.threads=1 ppo_mini_batch_size=8 micro_batch_size_per_gpu=8 es_manager.train.env_groups=2 es_manager.train.env_configs.n_groups=[2]';

scenario('the timeline of a running run opens from the palette and follows the run', async () => {
  await editor.command('RAGEN: Start Run');
  await editor.choose('quickstart');
  await editor.answer(small);
  await until('the first step', () => existsSync(join(folder(), 'timeline/steps.jsonl')), 180_000);
  await editor.command('RAGEN: Show Timeline');
  const frame = await page();
  await frame.locator('step-bars canvas').waitFor();
  const [, first] = /^Step (\d+):/.exec(await bars());
  await until('a newer step on the page', async () => {
    const [, newest] = /^Step (\d+):/.exec(await bars()) ?? [];
    return Number(newest) > Number(first);
  });
  await frame.getByRole('button', { name: 'Follow' }).click();
  await frame.locator('.step-name', { hasText: /^Step \d+/ }).waitFor();
  const shown = () => frame.locator('.step-name').innerText();
  const before = await shown();
  assert.match(before, /^Step \d+/);
  await until('a newer step, opened', async () => (await shown()) !== before);
});

scenario('after the run has ended, a step is opened down to an episode', async () => {
  await editor.command('RAGEN: Stop');
  await until('the end of the run', () => status().state === 'stopped', 120_000);
  const frame = await page();
  await frame.locator('.status', { hasText: 'stopped' }).waitFor();
  await frame.locator('h1').click();
  await editor.page.keyboard.press('Escape');
  await frame.getByRole('button', { name: 'Table view' }).click();
  await frame.locator('tbody .link').first().click();
  await frame.getByRole('button', { name: 'Table view' }).click();
  await frame.locator('step-canvas canvas').waitFor();
  await until('a drawn step', () => frame.locator('step-canvas canvas').evaluate(canvas => canvas.width > 300));
  await frame.locator('.search input').fill('wait for the batch');
  await editor.page.keyboard.press('Enter');
  await frame.getByRole('heading', { name: 'Wait for the batch' }).waitFor();
  const id = await frame.locator('.details-facts .link').first().innerText();
  assert.match(id, /^train-\d+-g\d+-m\d+$/);
  await frame.locator('.details-facts .link').nth(1).click();
  await frame.getByRole('heading', { name: /Sampling|Environment/ }).waitFor();
  await editor.theme('light');
  await editor.keep('timeline-step-light');
  await editor.theme('dark');
  await editor.keep('timeline-step-dark');
  await frame.locator('.details-facts .link').first().click();
  await editor.page.getByRole('tab', { name: /g\d+-m\d+/ }).waitFor();
});

scenario('the page is restored after a reload of the window', async () => {
  await editor.reload();
  await editor.page.getByRole('tab', { name: /Timeline/ }).click();
  const frame = await page();
  await frame.locator('step-canvas canvas, step-bars canvas').waitFor();
});
