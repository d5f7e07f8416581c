// Environments edited during training: a save affects only episodes that start afterwards; an error is shown at its
// line and leaves the running code unchanged; two versions are compared; execution counts of the policy's episodes are
// shown beside the lines; a breakpoint pauses the environment while the trainer waits. Saves screenshots to
// test-results/.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Editor, makeWorkspace, onlyEntry, scenarios, until } from '../editor.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
const source = join(workspace, 'envs/maze/maze.ts');
const runs = join(workspace, '.ragen', 'runs');
let editor;
const scenario = scenarios(() => editor);
before(async () => (editor = await Editor.start(workspace)));
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const runFolder = () => onlyEntry(runs);
const lines = (...names) =>
  readFileSync(join(runFolder(), ...names), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
const status = () => JSON.parse(readFileSync(join(runFolder(), 'status.json'), 'utf8'));
const events = kind => lines('events.jsonl').filter(event => event.kind === kind);
const edit = (from, to) => {
  const text = readFileSync(source, 'utf8');
  assert.ok(text.includes(from), from);
  writeFileSync(source, text.replace(from, to));
};
const furtherSteps = async count => {
  const { step } = status();
  await until(`${count} further steps`, () => status().step >= step + count, 180_000);
};
const showSource = async () => {
  await editor.command('View: Show Explorer');
  await editor.page.getByRole('treeitem', { name: 'maze.ts', exact: true }).dblclick();
  await editor.page
    .getByRole('tab', { name: /^maze\.ts/ })
    .first()
    .waitFor();
};

/** Tooltips along the bottom edge of the dashboard's first chart. */
async function marksOfFirstChart() {
  const plot = (await editor.webview('canvas')).locator('.chart-plot').first();
  const { x, y, width, height } = await plot.boundingBox();
  const told = [];
  for (let across = 0; across < width; across += 6) {
    await editor.page.mouse.move(x + across, y + height - 20);
    told.push(await plot.getAttribute('title'));
  }
  return told.filter(text => text !== null);
}

/** Texts of decorations after the visible lines. */
const behindLines = () =>
  editor.page.evaluate(() =>
    [...document.querySelectorAll('.view-lines [class*="ced-"]')].map(
      element => getComputedStyle(element, '::after').content,
    ),
  );

scenario('a new environment trains', async () => {
  await editor.command('RAGEN: New Environment');
  await editor.answer('maze');
  await editor.page.getByRole('tab', { name: /maze\.ts/ }).waitFor();
  await editor.command('RAGEN: Start Run');
  await editor.choose('maze.yaml');
  // The update takes a small part of a step, as with most environments of many turns, so a breakpoint is soon reached.
  const short = 'actor_rollout_ref.rollout.rollout_filter_value=0.25 ppo_mini_batch_size=32';
  await editor.answer(`trainer.total_training_steps=1000 workbench.threads=1 ${short}`);
  await editor.webview('canvas');
  await until('a step', () => existsSync(runs) && readdirSync(runs).length > 0 && status().step >= 1, 180_000);
});

scenario('a save changes the episodes that start afterwards, and the charts mark when', async () => {
  await furtherSteps(1);
  edit(
    '        const success = reached();\n',
    '        const success = reached();\n' +
      '        if (steps > 1000) {\n          return { observation: show(), reward: 100, terminated: true, truncated: false, info: {} };\n        }\n',
  );
  const [reload] = await until(
    'the reload',
    () => events('environment_reload').length > 0 && events('environment_reload'),
  );
  await furtherSteps(3);
  const played = readdirSync(join(runFolder(), 'episodes'))
    .filter(name => name.startsWith('step-'))
    .sort()
    .flatMap(name => lines('episodes', name).map(({ environment }) => environment.version));
  assert.deepEqual([...new Set(played)], [reload.data.from, reload.data.to]);
  await until('the mark', async () => (await marksOfFirstChart()).some(text => text.includes('maze.ts')));
  await editor.keep('live-editing-dashboard-dark');
});

scenario(
  'an error is shown in the Problems view at its line, and the run continues with the previous code',
  async () => {
    await showSource();
    edit("name: 'maze',", "name: 'maze',\n  actoins: 1,");
    await until('the refusal', () => events('environment_refused').length > 0);
    await editor.command('View: Focus Problems');
    const problem = editor.page
      .locator('.markers-panel')
      .getByText(/actoins/)
      .first();
    await problem.waitFor();
    await editor.picture('live-editing-problem-dark');
    await furtherSteps(1);
    edit('\n  actoins: 1,', '');
    await problem.waitFor({ state: 'detached' });
    await editor.command('View: Toggle Panel Visibility');
  },
);

scenario('two versions open side by side in the diff editor, with the effect of the change on reward', async () => {
  await editor.command('RAGEN: Compare Environment Versions');
  await editor.page.locator('.monaco-diff-editor').first().waitFor();
  await editor.page.locator('.monaco-diff-editor .char-insert, .monaco-diff-editor .line-insert').first().waitFor();
  await editor.page.getByRole('tab', { name: /Maze .* → .*, reward [+-]/ }).waitFor();
  await editor.keep('live-editing-compare-dark');
});

scenario('execution counts are shown beside the lines, and a reward that was never given is highlighted', async () => {
  await showSource();
  await editor.command('RAGEN: Toggle Environment Coverage');
  await editor.command('Go to Line/Column');
  await editor.answer(`:${lineOf('if (steps > 1000)')}`);
  const told = async pattern => (await behindLines()).filter(text => pattern.test(text)).length;
  await until('hits of many episodes behind lines', async () => (await told(/\d{2,}×/)) > 5, 180_000);
  await until('the reward that was never given', async () => (await told(/never given/)) > 0);
  await editor.keep('live-editing-coverage-dark');
});

scenario('a breakpoint pauses the environment while the trainer waits, and the run continues afterwards', async () => {
  const { page } = editor;
  await showSource();
  await editor.command('Go to Line/Column');
  await editor.answer(`:${lineOf('const [rows, columns]')}`);
  await page.keyboard.press('F9');
  await editor.command('RAGEN: Debug Environment');
  await page.locator('.debug-top-stack-frame-line').first().waitFor();
  const halted = performance.now() - editor.chosen;
  console.log(
    `Debug Environment: ${halted.toFixed(0)} ms of 5000 ms from the command to the first halt, of a training run`,
  );
  assert.equal(status().debugging, true);
  await editor.picture('live-editing-breakpoint-dark');
  const { step } = status();
  // eslint-disable-next-line no-restricted-syntax -- what must not happen has no event; a step takes far less
  await sleep(3000);
  assert.equal(status().step, step, 'the trainer did not wait');
  await editor.command('Remove All Breakpoints');
  await page.keyboard.press('F5');
  await until('a further step', () => status().step > step, 180_000);
  await page.keyboard.press('Shift+F5');
  await page.locator('.debug-toolbar').waitFor({ state: 'hidden' });
  await furtherSteps(1);
  assert.deepEqual(
    events('environment_debug').map(({ data }) => data.on),
    [true, false],
  );
});

scenario(
  'a run paused by an error in its environment reports the error, links to its line, and continues after the fix',
  async () => {
    const { page } = editor;
    const success = '        const success = reached();\n';
    const mistake = `        if (steps >= 0) throw new Error('lost');\n`;
    await editor.command('View: Close All Editors');
    await editor.showRuns();
    edit(success, mistake + success);
    await page.getByRole('treeitem', { name: /^maze, paused: maze\.ts:\d+ threw/ }).waitFor();
    assert.match(status().error, /lost.* episodes failed/);
    await page.locator('.statusbar-item.has-background-color', { hasText: 'maze' }).waitFor();
    await editor.command('Notifications: Show Notifications');
    const told = page.locator('.notifications-center .notification-list-item', {
      hasText: /Run maze is paused: .*lost/,
    });
    await told.waitFor();
    assert.equal(await told.count(), 1);
    await editor.picture('live-editing-paused-dark');
    await told.hover();
    await told.getByRole('button', { name: 'Show' }).click();
    await page
      .getByRole('tab', { name: /^maze\.ts/ })
      .first()
      .waitFor();
    await page
      .locator('.view-line', { hasText: /throw\snew\sError\('lost'\)/ })
      .first()
      .waitFor();
    const reloads = events('environment_reload').length;
    edit(mistake, '');
    await until('the reload', () => events('environment_reload').length > reloads);
    await editor.command('RAGEN: Resume');
    await until('the run to go on', () => status().state === 'running' && status().error === undefined);
    await furtherSteps(1);
    await page.locator('.statusbar-item.has-background-color', { hasText: 'maze' }).waitFor({ state: 'detached' });
  },
);

scenario('Stop ends the run', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Stop');
  await editor.page.getByRole('treeitem', { name: /maze, stopped/ }).waitFor();
});

/** Number of the first source line that contains `text`, from 1. */
function lineOf(text) {
  return (
    readFileSync(source, 'utf8')
      .split('\n')
      .findIndex(line => line.includes(text)) + 1
  );
}
