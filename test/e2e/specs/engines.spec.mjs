// An engine on a server, from the command to a run: it is connected to with a key, tested, kept, chosen on the New Run
// page, which disables what it cannot do, and trains a run. The key stays in the secret storage.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';
import { startPeer } from '../fixtures/tinker-peer.mjs';
import { root } from '../install.mjs';

const key = 'tml-7Hq2ZxW9cVbN4kLs8dQp';
const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
const runs = join(workspace, '.ragen', 'runs');
const model = join(root, 'media', 'models', 'ragen-tiny');
let editor;
let peer;
const scenario = scenarios(() => editor);

before(async () => {
  const { vocab_size: vocabSize } = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8'));
  peer = await startPeer({ vocabSize, key, offers: ['peer/bigram'] });
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  await peer?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const field = (page, name) => page.locator(`.field[data-key="${name}"]`);
const fill = (page, name, value) => field(page, name).locator('vscode-text-field').locator('input').fill(value);
const input = () => editor.page.locator('.quick-input-widget');

scenario('a server is connected to, tested and kept under a name', async () => {
  await editor.command('RAGEN: Connect to Engine');
  await editor.answer('not a url');
  await input().getByText('Enter an http or https URL').waitFor();
  await editor.answer(peer.url);
  await editor.choose('Enter a key');
  await input().getByText(`API key of ${peer.url}`).waitFor();
  await editor.answer(key);
  await input().getByText('Name under which New Run offers this engine').waitFor();
  await editor.page.getByRole('tab', { name: /Engine 127\.0\.0\.1/ }).waitFor();
  const document = editor.page.locator('.editor-instance .view-lines').first();
  await document.getByText('not encrypted', { exact: false }).first().waitFor();
  await document.getByText('accepted', { exact: false }).first().waitFor();
  await editor.picture('engine-report');
  await editor.answer('cluster');
  await editor.page.getByText('The engine cluster is saved.').first().waitFor();
  const settings = await until('the setting', () => {
    const machine = join(editor.profile, 'data', 'Machine', 'settings.json');
    return [machine, join(editor.profile, 'data', 'User', 'settings.json')]
      .filter(existsSync)
      .map(file => JSON.parse(readFileSync(file, 'utf8'))['ragen.engines'])
      .find(Boolean);
  });
  const { port } = new URL(peer.url);
  assert.equal(settings.cluster.url, peer.url);
  assert.equal(settings.cluster.keyEnv, `ENGINE_127_0_0_1_${port}_API_KEY`);
  assert.equal(settings.cluster.facts.server, 'Tinker peer 1.0.0');
  assert.equal(peer.models.size, 0);
});

scenario('the list of engines shows the kept engine', async () => {
  await editor.command('RAGEN: Engines');
  await input().getByText(peer.url).waitFor();
  await input()
    .getByText(/peer\/bigram · .* tokens\/s · round trip/)
    .waitFor();
  await editor.page.keyboard.press('Escape');
});

scenario('New Run offers the engine, and disables what it cannot do, with the reason', async () => {
  await editor.command('RAGEN: New Run');
  const page = await editor.webview('.estimate-row');
  await page.getByText('all trained').waitFor();
  const engine = page.locator('vscode-dropdown[aria-label="Engine (workbench.engine)"]');
  await engine.click();
  await engine.locator('vscode-option', { hasText: 'cluster' }).click();
  await page.locator('.yaml', { hasText: `engine_url: ${peer.url}` }).waitFor();
  await field(page, 'lora.rank').locator('.problem', { hasText: 'does not support: set it above 0' }).waitFor();
  await fill(page, 'lora.rank', '8');
  await page.locator('.estimate', { hasText: 'the server plans its own memory' }).waitFor();
  const device = field(page, 'workbench.device');
  await device.locator('.limit', { hasText: 'The server has its own devices' }).waitFor();
  assert.equal(await device.locator('vscode-dropdown').getAttribute('disabled'), '');
  const warmth = field(page, 'actor_rollout_ref.rollout.temperature');
  await warmth.locator('.limit', { hasText: 'The server trains at temperature 1.' }).waitFor();
  assert.equal(await warmth.locator('vscode-text-field').locator('input').isDisabled(), true);
  const yaml = await page.locator('.yaml').innerText();
  assert.match(yaml, /engine: tinker/);
  assert.match(yaml, /engine_api_key_env: ENGINE_127_0_0_1_\d+_API_KEY/);
  assert.equal(yaml.includes(key), false);
  for (const theme of ['light', 'dark']) {
    await editor.theme(theme);
    await editor.keep(`new-run-engine-${theme}`);
  }
});

scenario('the run trains on the server, and its folder does not contain the key', async () => {
  const page = await editor.webview('.estimate-row');
  await fill(page, 'trainer.experiment_name', 'on cluster');
  await fill(page, 'trainer.total_training_steps', '1');
  await fill(page, 'trainer.test_freq', '-1');
  const groups = page.locator('vscode-text-field[aria-label="Validation groups of QuickFrozenLake"]');
  await groups.locator('input').fill('1');
  await page.locator('.yaml', { hasText: /test_freq: -1[^]*env_groups: 1\n/ }).waitFor();
  await page.locator('.estimate', { hasText: 'the server plans its own memory' }).waitFor();
  await page.getByRole('button', { name: 'Start run' }).click();
  const ids = () => (existsSync(runs) ? readdirSync(runs) : []);
  const status = () =>
    ids()
      .map(id => join(runs, id, 'status.json'))
      .find(existsSync);
  await until(
    'the end of the run',
    () => {
      const { state, error } = JSON.parse(readFileSync(status() ?? '', 'utf8'));
      if (state === 'failed') throw new Error(error);
      return state === 'finished';
    },
    240_000,
  );
  assert.ok(peer.sent('forward_backward') > 0);
  const folder = join(runs, ids()[0]);
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  assert.equal(manifest.config.workbench.engine_url, peer.url);
  // The trainer removes its lease and its socket after it has stated the end.
  await until('the end of the trainer', () => !existsSync(join(folder, 'lease')), 30_000);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name));
  assert.ok(files.length > 3);
  assert.deepEqual(
    files.filter(file => readFileSync(file).includes(key)),
    [],
  );
});

scenario('the doctor checks the kept engine', async () => {
  await editor.command('RAGEN: Doctor');
  const tab = editor.page.getByRole('tab', { name: /RAGEN Doctor/ });
  await tab.waitFor();
  const text = editor.page.locator('.editor-instance .view-lines', { hasText: 'RAGEN Doctor' }).first();
  await text.click();
  await editor.page.keyboard.press('Control+End');
  await editor.page
    .getByText(/Engine.cluster/)
    .first()
    .waitFor();
  await editor.page
    .getByText(/key.accepted/)
    .first()
    .waitFor();
});
