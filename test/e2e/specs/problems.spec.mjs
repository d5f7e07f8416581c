// A broken configuration or override is reported, and no run starts.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios } from '../editor.mjs';

const broken = `defaults:
  - quickstart

trainer:
  total_training_steps: many
algorithm:
  gama: 0.9
`;
const workspace = makeWorkspace({ 'configs/broken.yaml': broken });
let editor;
const scenario = scenarios(() => editor);
before(async () => (editor = await Editor.start(workspace, { theme: 'light' })));
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

scenario('errors of a broken YAML file are shown in the Problems view at their lines', async () => {
  await editor.command('RAGEN: Start Run');
  await editor.choose('configs/broken.yaml');
  await editor.answer('');
  const problems = editor.page.locator('.markers-panel');
  await problems
    .getByText(/total_training_steps is "many"/)
    .first()
    .waitFor();
  await problems.getByText(/gama/).first().waitFor();
  await problems
    .getByText(/Ln 5, Col \d+/)
    .first()
    .waitFor();
  await problems
    .getByText(/Ln 7, Col \d+/)
    .first()
    .waitFor();
  await editor.picture('problems-light');
  assert.equal(editor.leases().size, 0);
});

scenario('invalid overrides are reported before a run is started', async () => {
  await editor.command('RAGEN: Start Run');
  await editor.choose('quickstart');
  await editor.page.locator('.quick-input-widget input.input').fill('fast');
  await editor.page.locator('.quick-input-message', { hasText: 'fast is not an override' }).waitFor();
  // The form also shows errors that only the trainer detects, and keeps the typed text.
  const misspelt = 'trainer.total_trainin_steps=2';
  await editor.page.locator('.quick-input-widget input.input').fill(misspelt);
  await editor.page.keyboard.press('Enter');
  await editor.page.locator('.quick-input-message', { hasText: /total_training_steps/ }).waitFor();
  assert.equal(await editor.page.locator('.quick-input-widget input.input').inputValue(), misspelt);
  await editor.page.keyboard.press('Escape');
  assert.equal(editor.leases().size, 0);
});
