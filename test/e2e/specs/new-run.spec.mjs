// The New Run form with a real trainer: values are entered, errors are shown at their fields, resources are estimated,
// the configuration is saved as a file, and the run is started.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
const runs = join(workspace, '.ragen', 'runs');
let editor;
const scenario = scenarios(() => editor);

before(async () => {
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const field = (page, key) => page.locator(`.field[data-key="${key}"]`);
/** Types a value into a field of the form. */
const fill = (page, key, value) => field(page, key).locator('vscode-text-field').locator('input').fill(value);

scenario('the form shows the quickstart, its estimated resources, and the resulting configuration', async () => {
  const opened = performance.now();
  await editor.command('RAGEN: New Run');
  const form = await editor.webview('.field[data-key="model_path"] vscode-text-field');
  const values = performance.now() - opened;
  const page = await editor.webview('.estimate-row');
  assert.equal(form, page);
  await fill(page, 'trainer.total_training_steps', 'none');
  const typed = performance.now();
  await field(page, 'trainer.total_training_steps').locator('.problem', { hasText: 'none' }).waitFor();
  console.log(
    `New Run: ${values.toFixed(0)} ms from the command to the values, ${(performance.now() - typed).toFixed(0)} ms from an invalid value to its error`,
  );
  await field(page, 'trainer.total_training_steps').getByRole('button', { name: 'Reset' }).click();
  await page.getByText('372 k parameters, all trained').or(page.getByText('373 k parameters, all trained')).waitFor();
  await page.getByText(/^about [\d.]+ m?s$/).waitFor();
  await fill(page, 'trainer.experiment_name', 'by form');
  await fill(page, 'trainer.total_training_steps', '2');
  await page.locator('.yaml', { hasText: 'total_training_steps: 2' }).waitFor();
  assert.match(await page.locator('.yaml').innerText(), /experiment_name: by form/);
  await editor.keep('new-run-dark');
  await editor.theme('light');
  await editor.keep('new-run-light');
  await editor.theme('contrast');
  await editor.keep('new-run-contrast');
  await editor.theme('dark');
});

scenario('an invalid value is reported at its field and blocks the start', async () => {
  const page = await editor.webview('.estimate-row');
  await fill(page, 'actor_rollout_ref.actor.optim.lr', '-1');
  const lr = field(page, 'actor_rollout_ref.actor.optim.lr');
  await lr.locator('.problem', { hasText: 'optim.lr is -1' }).waitFor();
  assert.match(await page.locator('.obstacle').innerText(), /^Correct Learning rate to start$/);
  await page.getByRole('button', { name: 'Start run' }).click(); // leads to the field
  await page.locator('.field[data-key="actor_rollout_ref.actor.optim.lr"] vscode-text-field:focus-within').waitFor();
  assert.equal(existsSync(runs), false);
  await lr.getByRole('button', { name: 'Reset' }).click();
  await lr.locator('.problem').waitFor({ state: 'hidden' });
  await page.getByText('all trained').waitFor();
});

scenario('environments are chosen by tag, for training and for validation', async () => {
  const page = await editor.webview('.environments');
  const count = name => page.locator(`vscode-text-field[aria-label="${name}"]`).locator('input');
  await count('Validation groups of QuickFrozenLake').fill('4');
  await page.locator('.yaml', { hasText: /val:[\s\S]*env_groups: 4/ }).waitFor();
});

scenario('the entered values are restored after a reload of the window', async () => {
  await editor.reload();
  const page = await editor.webview('.estimate-row');
  await page.locator('.yaml', { hasText: 'by form' }).waitFor();
});

scenario('the form is saved as a run configuration file', async () => {
  const page = await editor.webview('.estimate-row');
  await page.getByRole('button', { name: 'Save as YAML' }).click();
  const box = editor.page.locator('.quick-input-widget input.input');
  await box.waitFor();
  const file = join(workspace, 'config', 'by-form.yaml');
  await until('the file', async () => {
    if (await box.isVisible()) await box.press('Enter'); // a second Enter confirms creating the folder
    return existsSync(file);
  });
  assert.match(
    readFileSync(file, 'utf8'),
    /^# by form: extends quickstart\ndefaults:\n {2}- quickstart\n {2}- _self_\n/,
  );
  await editor.page.getByRole('tab', { name: /by-form\.yaml/ }).waitFor();
  await editor.page.getByText('Start run', { exact: false }).first().waitFor();
});

scenario('Start run starts a run with the entered values', async () => {
  const page = await editor.webview('.estimate-row');
  await page.getByRole('button', { name: 'Start run' }).click();
  const ids = () => (existsSync(runs) ? readdirSync(runs) : []);
  const file = await until(
    'the run',
    () =>
      ids()
        .map(id => join(runs, id, 'manifest.json'))
        .find(existsSync),
    60_000,
  );
  assert.equal(ids().length, 1);
  const manifest = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(manifest.name, 'by form');
  assert.equal(manifest.config.trainer.total_training_steps, 2);
  assert.equal(manifest.config.es_manager.val.env_groups, 4);
  await editor.webview('.chart canvas, .top-bar');
});

scenario('Start sweep writes the sweep’s file and starts its runs in a terminal', async () => {
  await editor.command('RAGEN: New Run');
  const page = await editor.webview('.estimate-row');
  const sweep = page.locator('[data-key="sweep"]');
  await sweep.getByLabel('Seeds of the sweep').locator('input').fill('none');
  await sweep.locator('.problem', { hasText: 'the seeds are neither a number nor a list' }).waitFor();
  assert.match(await page.locator('.obstacle').innerText(), /^Correct Sweep to start$/);
  await sweep.getByLabel('Seeds of the sweep').locator('input').fill('2');
  await page.locator('.yaml', { hasText: 'seeds: 2' }).waitFor();
  await editor.picture('sweep-form-dark');
  const before = readdirSync(runs);
  await page.getByRole('button', { name: 'Start sweep' }).click();
  await until('the file of the sweep', () => existsSync(join(workspace, 'config', 'sweeps', 'by-form.yaml')));
  const tab = editor.page.getByRole('tab', { name: /by-form · Sweep/ });
  await tab.waitFor();
  await tab.click({ button: 'middle' }); // closes the page; without it, the end of each run is reported
  await tab.waitFor({ state: 'detached' });
  const read = (id, name) => JSON.parse(readFileSync(join(runs, id, name), 'utf8'));
  const members = () =>
    readdirSync(runs).filter(id => !before.includes(id) && existsSync(join(runs, id, 'status.json')));
  await until(
    'the ends of both runs',
    () => {
      const ended = members().filter(id => read(id, 'status.json').state === 'finished');
      return ended.length === 2;
    },
    400_000,
  );
  const [one, two] = members().map(id => read(id, 'manifest.json'));
  assert.deepEqual([one.sweep.id, two.sweep.id], ['by-form', 'by-form']);
  assert.notEqual(one.config.seed.train, two.config.seed.train);
  await editor.page
    .locator('.notification-toast', { hasText: /finished after 2 steps: best validation/ })
    .first()
    .waitFor();
  await editor.page.locator('.statusbar-item', { hasText: /finished · step 2\/2/ }).waitFor();
  await until('the comparison', () => existsSync(join(workspace, '.ragen', 'sweeps', 'by-form', 'comparison.csv')));
  await editor.picture('sweep-terminal-dark');
});
