// A running rollout shown token by token, then a stored episode changed and continued by a checkpoint and by hand. Uses
// a real trainer.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, onlyEntry, scenarios, until } from '../editor.mjs';

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

const item = name => editor.page.locator('.part.sidebar').getByRole('treeitem', { name });
const folder = () => onlyEntry(runs);
/** What-if episodes of the run, from all files of its what-if folder. */
const whatIfs = () => {
  try {
    const names = readdirSync(join(folder(), 'what-if'));
    const texts = names.map(name => readFileSync(join(folder(), 'what-if', name), 'utf8'));
    return texts.flatMap(text => text.trim().split('\n').map(JSON.parse));
  } catch {
    return [];
  }
};
/** Picks the entry that contains `text` once the open list has `title`. */
async function pick(title, text) {
  await editor.page.locator('.quick-input-widget', { hasText: title }).waitFor();
  await editor.choose(text);
}

scenario('an episode is shown while it is sampled, followed by the next episode', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Start Run');
  await editor.choose('quickstart');
  await editor.answer('trainer.total_training_steps=1000 trainer.save_freq=1 workbench.threads=1');
  await item(/quickstart, .*step [1-9]\d*\/1000/).waitFor({ timeout: 240_000 });
  await editor.command('RAGEN: Watch Live');
  const page = await editor.webview('.live-turns');
  await page
    .getByText(/<think>|think/)
    .first()
    .waitFor();
  const watched = () => page.locator('.live-facts strong').getAttribute('title');
  const first = await until('an episode', watched);
  assert.match(first, /^(train|val)-\d+-g\d+-m\d+$/);
  await editor.keep('live-dark');
  await until('the next episode', async () => (await watched()) !== first);
  await editor.command('RAGEN: Stop');
  await item(/quickstart, stopped/).waitFor();
});

const whatIf = () => editor.page.locator('.codelens-decoration a', { hasText: 'what if' }).first();
const firstQuestion = () => editor.page.locator('.quick-input-widget', { hasText: 'What if… turn 1' });

scenario('a checkpoint continues an episode after a changed action, shown beside the original', async () => {
  await editor.command('View: Close All Editors');
  await editor.command('RAGEN: Open Reasoning Trace');
  await editor.choose('+1');
  await editor.takeLens(whatIf(), () => firstQuestion().isVisible());
  await pick('What if… turn 1', 'Another action');
  await pick('What if… turn 1', 'Left');
  await pick('Continue from turn 1 with…', 'step-');
  const [episode] = await until('the episode', () => whatIfs().length === 1 && whatIfs(), 240_000);
  assert.match(episode.id, /-w1$/);
  assert.equal(episode.turns[0].executed[0], 'Left');
  await editor.page.locator('.notification-toast', { hasText: 'What if: return' }).waitFor();
  await editor.page.getByRole('tab', { name: /-w1/ }).waitFor();
  await editor.keep('what-if-dark');
});

scenario('an episode is continued by hand and saved', async () => {
  await editor.command('Notifications: Clear All Notifications');
  await editor.takeLens(whatIf(), () => firstQuestion().isVisible());
  await pick('What if… turn 1', 'Nothing');
  await pick('Continue from turn 1 with…', 'By hand');
  await editor.page.locator('.quick-input-widget', { hasText: 'Turn 1 · return' }).waitFor();
  await editor.answer('Down');
  const next = editor.page.locator('.quick-input-widget', { hasText: 'Turn 2 · return' });
  await until('the next turn, or the end', async () => whatIfs().length === 2 || (await next.isVisible()));
  if (whatIfs().length < 2) await pick('Turn 2 · return', 'End here and keep the what-if');
  const both = await until('the second episode', () => whatIfs().length === 2 && whatIfs());
  assert.equal(both[1].turns.length, 1);
  assert.deepEqual(both[1].turns[0].executed, ['Down']);
});
