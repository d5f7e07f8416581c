// Changing settings while a run trains, and comparing finished runs, with a real trainer.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';
import { root } from '../install.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
const runs = join(workspace, '.ragen', 'runs');
let editor;
const scenario = scenarios(() => editor);

/**
 * Writes the runs of experiment 1 (test/experiments) as run folders, from the metrics in its CSV. Returns their ids.
 */
function keepExperiment(arms) {
  const metrics = new Map();
  for (const line of readFileSync(join(root, 'test/experiments/results/1-filter.csv'), 'utf8')
    .trim()
    .split('\n')
    .slice(1)) {
    const [, arm, seed, step, metric, value] = /^"?([^",]+)"?,(\d+),(\d+),([^,]+),(.+)$/.exec(line);
    const id = `${arm.replace(' ', '-')}-${seed}`;
    const run = metrics.get(id) ?? { arm, seed: Number(seed), lines: {} };
    metrics.set(id, run);
    run.lines[step] = { ...run.lines[step], [metric]: Number(value) };
  }
  const wanted = [...metrics].filter(([id]) => arms.includes(id));
  for (const [id, { arm, seed, lines }] of wanted) {
    const folder = join(runs, id);
    mkdirSync(folder, { recursive: true });
    const time = '2026-02-03T10:00:00.000Z';
    const on = arm === 'filter on';
    const config = {
      actor_rollout_ref: { rollout: { rollout_filter_value: on ? 0.9 : 1, rollout_filter_include_zero: !on } },
      seed: { train: seed, val: 123 },
      trainer: { experiment_name: `${arm} seed ${seed}`, total_training_steps: 32 },
    };
    const write = (name, value) => writeFileSync(join(folder, name), `${JSON.stringify(value)}\n`);
    write('manifest.json', {
      ...{
        schema: 1,
        id,
        name: `${arm} seed ${seed}`,
        created: time,
        config_name: 'quickstart',
        overrides: [],
        config,
      },
      ...{ config_hash: id, seeds: { train: seed, val: 123 }, versions: {}, hardware: {}, environments: [] },
      ...{
        model: { path: 'tiny', sha256: '', parameters: 1 },
        sweep: { id: '1-filter', point: `${arm}, seed ${seed}` },
      },
    });
    write('status.json', {
      ...{ state: 'finished', step: 32, total_steps: 32, success: 0.6, reward: 1, tokens_per_s: null, eta_s: null },
      ...{ phase: 'idle', updated: time },
    });
    const rows = Object.entries(lines).map(([step, values]) =>
      JSON.stringify({ step: Number(step), time, wall_s: Number(step), ...values }),
    );
    writeFileSync(join(folder, 'metrics.jsonl'), `${rows.join('\n')}\n`);
    writeFileSync(join(folder, 'events.jsonl'), '');
  }
}

before(async () => {
  keepExperiment(['filter-on-10000', 'filter-on-1010000', 'filter-on-2010000', 'filter-off-10000']);
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const item = name => editor.page.locator('.part.sidebar').getByRole('treeitem', { name });

scenario('Compare Runs offers the sweep as one group and shows the results of its configurations', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Compare Runs');
  const row = editor.page.locator('.quick-input-list .monaco-list-row', { hasText: 'all 4 runs' });
  await row.waitFor();
  await row.locator('.quick-input-list-checkbox, .monaco-checkbox, input[type=checkbox]').first().click();
  await editor.page.locator('.quick-input-widget').getByRole('button', { name: 'OK' }).click();
  const page = await editor.webview('.compare-table');
  await page.getByRole('heading', { name: '4 runs of 2 configurations' }).waitFor();
  await page.getByRole('columnheader', { name: 'rollout_filter_value' }).waitFor();
  await page.locator('.chart canvas[aria-label^="Chart of Success"]').waitFor();
  const on = await page.locator('tbody tr', { hasText: 'filter on' }).first().innerText();
  assert.match(on, /\d % ± \d[\s\S]*0\.9\tfalse/);
  await editor.keep('compare-dark');
  await editor.theme('light');
  await editor.keep('compare-light');
  await editor.theme('contrast');
  await editor.keep('compare-contrast');
  await editor.theme('dark');
});

scenario('the difference between configurations opens in the diff editor', async () => {
  const page = await editor.webview('.compare-table');
  await page.getByRole('button', { name: 'difference' }).click();
  await editor.page.getByRole('tab', { name: /↔.*Configuration/ }).waitFor();
  await editor.page.locator('.monaco-diff-editor .view-line', { hasText: 'rollout_filter_value' }).nth(1).waitFor();
  await editor.page.locator('.statusbar-item', { hasText: 'Ln 3' }).waitFor(); // the diff editor has the focus
});

scenario('a setting changed while a run trains applies from the next step, and the charts mark it', async () => {
  await editor.command('View: Close Editor'); // an active configuration file would add its own commands to the palette
  await editor.command('RAGEN: Start Run…');
  await editor.choose('quickstart');
  await editor.answer('trainer.total_training_steps=1000 workbench.threads=1');
  await item(/quickstart, .*step \d+\/1000/).waitFor();
  const folder = join(
    runs,
    readdirSync(runs).find(name => name.includes('quickstart')),
  );
  const status = () => JSON.parse(readFileSync(join(folder, 'status.json'), 'utf8'));
  await until('a step', () => status().step >= 1, 240_000);
  await editor.command('RAGEN: Change Settings of a Run');
  await editor.choose('Total training steps');
  const input = editor.page.locator('.quick-input-widget input.input');
  await input.fill('0');
  await editor.page.locator('.quick-input-message', { hasText: 'trainer.total_training_steps is 0' }).waitFor();
  await editor.answer('900');
  await until('the new number of steps', () => status().total_steps === 900, 240_000);
  const events = readFileSync(join(folder, 'events.jsonl'), 'utf8').trim().split('\n').map(JSON.parse);
  const { data } = events.find(({ kind, data }) => kind === 'setting' && data?.key);
  assert.deepEqual(data, { key: 'trainer.total_training_steps', from: 1000, to: 900 });
  const dashboard = await editor.webview('.chart canvas');
  await dashboard.getByRole('button', { name: /^Events/ }).click();
  await dashboard
    .locator('.event-table tr', { hasText: 'trainer.total_training_steps 1000 → 900' })
    .waitFor({ state: 'attached' });
  await editor.picture('settings-changed-dark');
  await editor.command('RAGEN: Stop');
  await item(/quickstart, stopped/).waitFor();
});
