// The Runs view and run configurations: runs are renamed, tagged, filtered, annotated, archived, compared, exported and
// deleted; a configuration is completed, explained, fixed and started from its file.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';
import { makeRun, makeRuns, touchLease } from '../fixtures/make-run.mjs';

const configuration = `# Two steps on small lakes.
defaults:
  - quickstart
  - _self_

trainer:
  experiment_name: mine
  total_training_steps: 2
  val_before_train: false
  test_frq: -1
  save_freq: -1
`;
const workspace = makeWorkspace({
  'config/mine.yaml': configuration,
  'out/README.md': 'Exports.\n',
  'compose.yaml': 'services:\n  test_frq: -1\n',
});
const runs = join(workspace, '.ragen/runs');
const labels = id => JSON.parse(readFileSync(join(runs, id, 'labels.json'), 'utf8'));
let editor;
let heart;
const scenario = scenarios(() => editor);

before(async () => {
  const [alive] = makeRuns(workspace);
  touchLease(alive);
  heart = setInterval(() => touchLease(alive), 1000);
  editor = await Editor.start(workspace);
});
after(async () => {
  clearInterval(heart);
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const item = name => editor.page.locator('.part.sidebar').getByRole('treeitem', { name });
const box = title => editor.page.locator('.quick-input-widget', { hasText: title });
const input = () => editor.page.locator('.quick-input-widget input.input');

/** Picks an action in the context menu of a run, until `came`, what the action shows, is visible. */
const menu = (run, action, came) => editor.takeFromMenu(item(run), action, () => came.first().isVisible());

/** Presses a button of the open dialog. */
const press = name => editor.page.locator('.monaco-dialog-box').getByRole('button', { name }).click();

scenario('runs are grouped by state, and a badge counts the running ones', async () => {
  const items = await editor.showRuns();
  await until('eight tree items', async () => (await items.count()) >= 8);
  await editor.page.locator('.activitybar .badge-content', { hasText: /^1$/ }).waitFor();
});

scenario('a run is renamed, and gets tags that are typed or selected', async () => {
  await menu(/^bandit/, 'Rename', box('Rename Run'));
  await editor.answer('bandit, first try');
  await item(/^bandit, first try, stopped/).waitFor();
  assert.equal(labels('c-bandit').name, 'bandit, first try');
  await menu(/^bandit, first try/, 'Tag', box('Tags of bandit'));
  await input().fill('paper, #lr');
  await editor.page.locator('.quick-input-list .monaco-list-row', { hasText: 'paper' }).waitFor();
  await input().press('Enter');
  await item(/^bandit, first try, stopped, #paper #lr · step 7/).waitFor();
  await menu(/^sokoban-grpo/, 'Tag', box('Tags of sokoban-grpo'));
  await editor.choose('paper');
  await input().press('Enter');
  await item(/^sokoban-grpo, finished, #paper · step 40/).waitFor();
  assert.deepEqual(labels('b-sokoban-grpo').tags, ['paper']);
});

scenario('a filter shows only the runs with a tag', async () => {
  await editor.command('RAGEN: Filter Runs');
  await box('Filter Runs').waitFor();
  await editor.answer('#paper');
  await item(/^lake-long/).waitFor({ state: 'detached' });
  assert.equal(await item(/#paper/).count(), 2);
  await editor.picture('runs-filtered-dark');
  await editor.command('RAGEN: Clear Filter of Runs');
  await item(/^lake-long/).waitFor();
});

scenario('notes are stored in a Markdown file of the run', async () => {
  await menu(/^sokoban-grpo/, 'Edit Notes', editor.page.getByRole('tab', { name: /notes\.md/ }));
  await editor.page.locator('.editor-instance .view-line').first().click();
  await editor.page.keyboard.press('Control+End');
  await editor.page.keyboard.type('Learned after step 20.');
  await editor.page.keyboard.press('Control+s');
  await until('the notes', () =>
    /Learned after step 20\./.test(readFileSync(join(runs, 'b-sokoban-grpo/notes.md'), 'utf8')),
  );
  await editor.command('View: Close All Editors');
});

scenario('an archived run is hidden until archived runs are shown', async () => {
  await editor.takeFromMenu(item(/^lake-long/), 'Archive', () => labels('e-lake-long').archived);
  await item(/^lake-long/).waitFor({ state: 'detached' });
  await editor.command('RAGEN: Show Archived Runs');
  await item(/^Archived/).click();
  await item(/^lake-long/).waitFor();
  await editor.takeFromMenu(item(/^lake-long/), 'Unarchive', async () => !(await item(/^Archived/).isVisible()));
});

scenario('the configurations of two runs open side by side', async () => {
  await item(/^countdown/).click({ modifiers: ['Control'] });
  await item(/^sokoban-grpo/).click({ modifiers: ['Control'] });
  const both = editor.page.getByRole('tab', { name: /sokoban-grpo ↔ countdown: Configuration/ });
  await menu(/^sokoban-grpo/, 'Compare Configurations', both);
  const diff = editor.page.locator('.monaco-diff-editor');
  await diff.locator('.view-line', { hasText: 'experiment_name: sokoban-grpo' }).waitFor();
  await diff.locator('.view-line', { hasText: 'experiment_name: countdown' }).waitFor();
  await editor.keep('runs-dark');
  await editor.command('View: Close All Editors');
});

scenario('a run is exported for other programs', async () => {
  await menu(/^sokoban-grpo/, 'Export', box('metrics.csv'));
  await editor.choose('episodes.jsonl');
  await input().press('Enter');
  await box('A folder for each run is created here').waitFor();
  const into = `${workspace}/out/`;
  const table = join(workspace, 'out/b-sokoban-grpo/metrics.csv');
  const accept = async () => {
    // The dialog may later replace a typed folder by its start folder, and it validates a typed folder before it
    // accepts the folder. Therefore Enter is pressed only if the input still contains the typed folder.
    if ((await input().inputValue({ timeout: 1000 })) === into) await input().press('Enter', { timeout: 1000 });
    else await input().fill(into, { timeout: 1000 });
  };
  await until('the export', async () => {
    await accept().catch(() => undefined);
    return existsSync(join(workspace, 'out/b-sokoban-grpo/episodes.jsonl'));
  });
  const [head, first] = readFileSync(table, 'utf8').split('\n');
  assert.match(head, /^step,time,wall_s,train\/CoordFrozenLake\/success,/);
  assert.match(first, /^1,/);
});

scenario('a run is deleted after a confirmation; a running one cannot be deleted', async () => {
  const dialog = editor.page.locator('.monaco-dialog-box', { hasText: 'Delete the run bandit, first try?' });
  await menu(/^bandit, first try/, 'Delete', dialog);
  await press('Move to Trash');
  await until('it is gone', async () => {
    if (await editor.page.locator('.monaco-dialog-box', { hasText: 'Delete Permanently' }).isVisible())
      await press('Delete Permanently'); // a server has no trash
    return !existsSync(join(runs, 'c-bandit'));
  });
  await item(/^bandit/).waitFor({ state: 'detached' });
  const refusal = editor.page.locator('.notification-toast', { hasText: 'frozen-lake is active' });
  await menu(/^frozen-lake/, 'Delete', refusal);
  await editor.command('Notifications: Clear All Notifications');
  assert.equal(JSON.parse(readFileSync(join(runs, 'a-frozen-lake/manifest.json'), 'utf8')).id, 'a-frozen-lake');
});

scenario("deleting a run's folder outside the editor closes its pages", async () => {
  const folder = makeRun(workspace, { id: 'z-elsewhere', name: 'elsewhere', state: 'finished', step: 3 });
  await item(/^elsewhere/).click();
  const tab = editor.page.getByRole('tab', { name: /elsewhere/ });
  await tab.waitFor();
  rmSync(folder, { recursive: true }); // as another window or the CLI does
  await tab.waitFor({ state: 'detached' });
  await item(/^elsewhere/).waitFor({ state: 'detached' });
});

const lens = title => editor.page.locator('.codelens-decoration a', { hasText: title });
const problem = text => editor.page.locator('.markers-panel .monaco-tl-row', { hasText: text });
const file = () => readFileSync(join(workspace, 'config/mine.yaml'), 'utf8');

/** Opens a file of the workspace by its name. */
async function open(name) {
  await editor.page.keyboard.press('Control+p');
  await input().fill(name);
  await editor.choose(name);
  await editor.page.getByRole('tab', { name: new RegExp(name.replace('.', '\\.')) }).waitFor();
}

/** Moves the cursor to a position in the open document. */
async function goTo(line, column) {
  await editor.command('Go to Line/Column');
  await editor.answer(`:${line}:${column}`);
  // Keys typed before the editor regains the focus are lost.
  await editor.page.locator('.statusbar-item', { hasText: `Ln ${line}, Col` }).waitFor();
  await editor.page.locator('.monaco-editor.focused').first().waitFor();
}

scenario('a run configuration has code lenses, and other YAML files have none', async () => {
  await open('mine.yaml');
  for (const title of ['Start run', 'Check', 'Resolved configuration']) await lens(title).first().waitFor();
  await open('compose.yaml');
  await editor.page.locator('.view-line', { hasText: 'services' }).waitFor();
  assert.equal(await lens('Start run').count(), 0);
  await editor.command('View: Close Editor');
});

scenario('an unknown key is reported at its line and fixed by a quick fix', async () => {
  await editor.command('View: Focus Problems');
  await problem('trainer.test_frq is not a known key: did you mean test_freq?').waitFor();
  assert.equal(await problem('is not a known key').count(), 1); // other YAML files are not checked
  await goTo(10, 5);
  const fix = editor.page.locator('.action-widget', { hasText: 'Change to test_freq' });
  await until('the quick fix', async () => {
    await editor.page.keyboard.press('Control+.');
    return fix.waitFor({ timeout: 5000 }).then(
      () => true,
      () => false, // the editor had not regained the focus when the key was pressed
    );
  });
  await editor.page.keyboard.press('Enter');
  await problem('is not a known key').waitFor({ state: 'detached' });
  await editor.page.locator('.view-line', { hasText: 'test_freq: -1' }).waitFor();
});

scenario('keys and values have completion and hover help', async () => {
  const suggestion = text => editor.page.locator('.suggest-widget .monaco-list-row', { hasText: text }).first();
  await goTo(11, 20);
  await editor.page.keyboard.press('Enter');
  await editor.page.keyboard.type('log_gr');
  await editor.page.keyboard.press('Control+Space');
  await suggestion('log_group_rv_table').waitFor();
  await editor.page.keyboard.press('Enter');
  await suggestion('true').waitFor();
  await editor.picture('configuration-completion-dark');
  await editor.page.keyboard.press('Enter');
  await editor.page.locator('.view-line', { hasText: /log_group_rv_table:\s(true|false)/ }).waitFor();
  await goTo(8, 8);
  await editor.command('Show or Focus Hover');
  const card = editor.page.locator('.monaco-hover', { hasText: 'Training steps of the run' }).first();
  await card.waitFor();
  assert.match(await card.innerText(), /trainer\.total_training_steps · an integer ≥ 0/);
  await editor.picture('configuration-hover-dark');
  await editor.page.keyboard.press('Escape');
});

scenario('the trainer checks a saved configuration, and its resolved values open beside it', async () => {
  await goTo(13, 1);
  await editor.page.keyboard.press('Control+End');
  await editor.page.keyboard.type('\nes_manager: {train: {env_groups: 3}}');
  await editor.page.keyboard.press('Control+s');
  await problem(/env_groups is 3/).waitFor();
  await editor.page.keyboard.press('Control+End');
  await editor.command('Delete All Left');
  await editor.page.keyboard.press('Control+s');
  await problem(/env_groups is 3/).waitFor({ state: 'detached' });
  await editor.page.keyboard.press('Control+Home');
  const resolved = editor.page.getByRole('tab', { name: /mine\.resolved\.yaml/ });
  await editor.takeLens(lens('Resolved configuration').first(), () => resolved.isVisible(), 30_000);
  await editor.page.locator('.view-line', { hasText: 'Composed of' }).waitFor();
  await editor.theme('light');
  await editor.keep('runs-light');
  await editor.theme('contrast');
  await editor.keep('runs-contrast');
  await editor.theme('dark');
});

scenario('a run starts from its file, and another from the same configuration with overrides', async () => {
  await editor.takeLens(lens('Start run').first(), () => item(/^mine, .*step \d\/2/).isVisible(), 60_000);
  await item(/^mine, finished/).waitFor({ timeout: 300_000 });
  const [id] = readdirSync(runs).filter(name => name.includes('-mine-'));
  const manifest = JSON.parse(readFileSync(join(runs, id, 'manifest.json'), 'utf8'));
  assert.equal(manifest.config_file, join(workspace, 'config/mine.yaml'));
  assert.ok(readdirSync(join(runs, id, 'tensorboard')).length === 1);
  assert.match(file(), /test_freq: -1/);
  await menu(/^mine, finished/, 'Evaluate…', box('plays the validation episodes once'));
  await editor.answer('');
  await item(/^eval of mine \w{4} step 2, .*episode \d+\/\d+/).waitFor();
  const formTab = editor.page.getByRole('tab', { name: /New Run/ });
  await menu(/^mine, finished/, 'Duplicate with Changes', formTab);
  const form = await editor.webview('.field[data-key="trainer.experiment_name"] vscode-text-field');
  const fill = (key, value) => form.locator(`.field[data-key="${key}"] vscode-text-field`).locator('input').fill(value);
  await fill('trainer.experiment_name', 'again');
  await fill('trainer.total_training_steps', '1');
  await form
    .locator('.yaml', { hasText: /again[\s\S]*total_training_steps: 1|total_training_steps: 1[\s\S]*again/ })
    .waitFor();
  await form.getByRole('button', { name: 'Start run' }).click();
  await item(/^again, .*step \d\/1/).waitFor();
  await item(/^again, finished/).waitFor({ timeout: 300_000 });
});
