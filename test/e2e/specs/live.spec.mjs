// A run of a real trainer from start to stop, started from the palette, with reloads of the window in between.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, isAlive, makeWorkspace, onlyEntry, scenarios, until } from '../editor.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
let editor;
const scenario = scenarios(() => editor);
before(async () => (editor = await Editor.start(workspace)));
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const item = name => editor.page.getByRole('treeitem', { name });
const onlyLease = () => [...editor.leases().values()][0];
const runs = join(workspace, '.ragen', 'runs');
const runFolder = () => onlyEntry(runs);
const status = () => JSON.parse(readFileSync(join(runFolder(), 'status.json'), 'utf8'));

scenario('an empty workspace offers to start a run', async () => {
  await editor.showRuns();
  await editor.page.getByRole('button', { name: 'Start Run' }).first().waitFor();
  await editor.page.locator('.statusbar-item', { hasText: 'Activating' }).waitFor({ state: 'detached' });
  await editor.picture('welcome-dark');
});

scenario(
  'Start Run starts the quickstart, shows it in the tree and opens its dashboard, which draws live',
  async () => {
    await editor.command('RAGEN: Start Run');
    await editor.choose('quickstart');
    await editor.answer('trainer.total_training_steps=1000 workbench.threads=1');
    await item(/quickstart, .*step \d+\/1000/).waitFor();
    const dashboard = await editor.webview('canvas');
    await until('three steps', () => status().step >= 3, 180_000);
    await until('the steps on the page', async () =>
      /[3-9]\s*\/\s*1\s?000|\d\d\s*\/\s*1\s?000/.test(await dashboard.locator('body').innerText()),
    );
    await editor.page.locator('.statusbar-item', { hasText: /quickstart \d+\/1000/ }).waitFor();
    await editor.picture('live-dashboard-dark');
  },
);

scenario('Pause pauses the run, and Resume continues it', async () => {
  await editor.command('RAGEN: Pause');
  await item(/quickstart, paused/).waitFor();
  const { step } = status();
  await editor.command('RAGEN: Resume');
  await until('a further step', () => status().step > step, 120_000);
});

scenario('Save Checkpoint writes a checkpoint at the end of the step', async () => {
  const checkpoints = () => readdirSync(join(runFolder(), 'checkpoints')).filter(name => /^step-\d{6}$/.test(name));
  const before = checkpoints().length;
  await editor.command('RAGEN: Save Checkpoint');
  await until('a checkpoint', () => checkpoints().length > before, 120_000);
});

scenario('a run continues during a reload of the window and is shown afterwards', async () => {
  const { pid } = onlyLease();
  const { step } = status();
  await editor.reload();
  await editor.showRuns();
  await item(/quickstart, .*step \d+\/1000/).waitFor();
  assert.equal(onlyLease().pid, pid);
  assert.ok(isAlive(pid));
  await until('a further step', () => status().step > step, 120_000);
  await editor.webview('canvas');
});

scenario('the Episodes page opens an episode of the run', async () => {
  await editor.command('RAGEN: Open Episodes');
  const episodes = await editor.webview('.episode-row');
  await episodes.locator('.episode-row').first().click();
  await episodes.getByText('Turn 1', { exact: true }).first().waitFor();
  await editor.picture('live-episodes-dark');
});

scenario('Stop ends the run with a checkpoint, and the run is then listed as stopped', async () => {
  const { pid } = onlyLease();
  await editor.command('RAGEN: Stop');
  await item(/quickstart, stopped/).waitFor();
  await until('the trainer to end', () => !isAlive(pid));
  assert.equal(status().state, 'stopped');
  await editor.reload();
  await editor.showRuns();
  await item(/quickstart, stopped/).waitFor();
});

scenario('Resume continues a stopped run from its last step', async () => {
  const { step } = status();
  await editor.command('RAGEN: Resume');
  await until('a further step', () => status().state === 'running' && status().step > step, 180_000);
  await item(/quickstart, .*step \d+\/1000/).waitFor();
  // The reload restores the dashboard tab; opening the dashboard again must not add a second tab.
  await until(
    'one dashboard',
    async () => (await editor.page.getByRole('tab', { name: /quickstart · Dashboard/ }).count()) === 1,
  );
});

scenario('a trainer that is alive but does not respond is not reported as ended', async () => {
  const { pid } = onlyLease();
  process.kill(pid, 'SIGSTOP');
  try {
    await item(/quickstart, not responding for \d+ s/).waitFor();
    await editor.picture('not-responding-dark');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await item(/quickstart, not responding/).waitFor({ state: 'detached' });
  assert.equal(await editor.page.locator('.notification-toast', { hasText: 'was interrupted' }).count(), 0);
});

/**
 * Waits until another trainer than `pid` serves the run and the editor knows it. Before that, the end of the trainer
 * would be reported as a failed start. `updated` is the time in the status that trainer `pid` left.
 */
async function served(pid, updated) {
  await until('a new trainer', () => {
    const now = status();
    return onlyLease().pid !== pid && isAlive(onlyLease().pid) && now.updated !== updated && now.state === 'running';
  });
  await editor.page.locator('.statusbar-item', { hasText: 'Starting quickstart' }).waitFor({ state: 'detached' });
}

/** Kills the run's trainer; returns its process id and the time in the status that it left. */
function killTrainer() {
  const { pid } = onlyLease();
  process.kill(pid, 'SIGKILL');
  return { pid, updated: status().updated };
}

scenario('a killed trainer is reported once, and its run can be resumed', async () => {
  const { pid, updated } = killTrainer();
  const toast = editor.page.locator('.notification-toast', { hasText: /Run quickstart was interrupted at step \d+/ });
  await Promise.all([toast.waitFor(), item(/quickstart, interrupted/).waitFor()]); // the editor hides toasts after a while
  assert.equal(await toast.count(), 1);
  await editor.picture('interrupted-dark');
  await toast.getByRole('button', { name: 'Resume' }).click();
  await served(pid, updated);
  await item(/quickstart, .*step \d+\/1000/).waitFor();
});

scenario('Resume on a notification of a run that was resumed elsewhere opens the run', async () => {
  const { pid, updated } = killTrainer();
  const toast = editor.page.locator('.notification-toast', { hasText: /Run quickstart was interrupted at step \d+/ });
  await toast.waitFor();
  await editor.command('RAGEN: Resume');
  await served(pid, updated);
  await item(/quickstart, (?!interrupted)/).waitFor();
  await toast.getByRole('button', { name: 'Resume' }).click();
  await editor.page.locator('.notification-toast', { hasText: /Run quickstart continues/ }).waitFor();
});

/** Waits until the tree shows a step that the run finished after this call. */
async function followed() {
  const { step } = status();
  const shown = async () =>
    Number(
      /step (\d+)\/1000/.exec(
        await item(/quickstart/)
          .first()
          .getAttribute('aria-label'),
      )?.[1],
    );
  await until('the tree follows', async () => (await shown()) > step);
}

scenario('a run continues after its extension host is killed, and the next host shows it', async () => {
  const { pid } = onlyLease();
  const hosts = editor.extensionHosts();
  assert.equal(hosts.length, 1);
  process.kill(hosts[0], 'SIGKILL');
  await until('another extension host', () => editor.extensionHosts().some(other => other !== hosts[0]));
  await followed();
  assert.equal(onlyLease().pid, pid);
});

scenario('a run continues after its window is killed, and the next window shows and stops it', async () => {
  const { pid } = onlyLease();
  const { step } = status();
  editor.killWindow();
  await until('a step that nobody sees', () => status().step > step, 120_000);
  await editor.browse(1440, 900);
  await editor.showRuns();
  await followed();
  assert.equal(onlyLease().pid, pid);
  await editor.command('RAGEN: Stop');
  await item(/quickstart, stopped/).waitFor();
  await until('the trainer to end', () => !isAlive(pid));
});
