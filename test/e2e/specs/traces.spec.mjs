// Reasoning traces on a real run of two steps whose environment is copied into the workspace. An episode opens as a
// document with folding, outline, overlays, hover cards, links to other episodes, a diff and a replay, and is restored
// after a reload. The environment's source shows statistics of its code. The run belongs to another user, so its code
// runs only after consent. Saves screenshots in light, dark and high contrast to screenshots/.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { atRest } from '../at-rest.mjs';
import { Editor, makeWorkspace, onlyEntry, scenarios, until } from '../editor.mjs';
import { root } from '../install.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
const runs = join(workspace, '.ragen', 'runs');
let editor;
const scenario = scenarios(() => editor);

before(async () => {
  const overrides = ['trainer.total_training_steps=2', 'trainer.test_freq=1', 'trainer.experiment_name=lake'];
  overrides.push('es_manager.val.env_groups=16', 'es_manager.val.env_configs.n_groups=[16]');
  const train = [join(root, 'dist', 'cli.cjs'), 'train', '--config-name', 'quickstart', ...overrides];
  const env = { ...process.env, RAGEN_USER_STORAGE: join(workspace, 'another user') };
  execFileSync(process.execPath, train, { cwd: workspace, stdio: 'pipe', env });
  const environments = join(onlyEntry(runs), 'environments');
  const kept = onlyEntry(environments);
  cpSync(join(kept, 'sources'), join(workspace, 'envs'), { recursive: true });
  const about = JSON.parse(readFileSync(join(kept, 'version.json'), 'utf8'));
  writeFileSync(join(kept, 'version.json'), JSON.stringify({ ...about, root: join(workspace, 'envs') }));
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const plain = words => words.replaceAll('\u00a0', ' ');
const text = async () => plain(await editor.page.locator('.editor-instance .view-lines').first().innerText());
const status = name => editor.page.locator('.statusbar-item', { hasText: name });
const lens = title => editor.page.locator('.codelens-decoration a', { hasText: title }).first();
const shortName = id => id.split('-').slice(2).join('-');
const header = async () => /# (\w+-\d+-g\d+-m\d+)/.exec(await text())?.[1];
/** Moves the cursor to the top of the open trace and returns the id in its header. */
async function shown() {
  // Retries, because a key pressed before the trace is visible goes to another document.
  return until('the top of a trace', async () => {
    await editor.page.mouse.click(900, 320); // a locator's click would scroll the text
    await editor.page.keyboard.press('Control+Home');
    const isThere = await lens('replay')
      .waitFor({ timeout: 4000 })
      .then(
        () => true,
        () => false,
      );
    return isThere && header();
  });
}
/** Whether the top of the active trace matches `facts`. A trace opens at the scroll position of the previous one. */
async function reads(facts) {
  await shown();
  return facts.test(await text());
}
/** Types into the open list and picks the entry that contains `words`. */
async function take(words) {
  const input = editor.page.locator('.quick-input-widget input.input');
  await input.fill(words);
  await editor.choose(words);
}

/**
 * Hovers over the last visible position with the text `words` until the hover contains `expected`. Returns the hover's
 * text.
 */
async function hover(words, expected) {
  const place = editor.page.locator('.view-line span', { hasText: words }).last();
  return until(`a hover with ${expected}`, async () => {
    await editor.page.mouse.move(900, 40);
    const box = await place.boundingBox();
    await editor.page.mouse.move(box.x + 12, box.y + box.height / 2, { steps: 4 });
    const card = editor.page.locator('.monaco-hover:not(.hidden)').filter({ has: editor.page.locator(expected) });
    return card
      .first()
      .waitFor({ timeout: 4000 })
      .then(
        async () => `hover: ${await card.first().innerText()}`, // an image has no text
        () => undefined,
      );
  });
}

scenario(
  'an episode opens as a document with its facts, turns and rewards, and the best episode is listed first',
  async () => {
    await editor.command('RAGEN: Open Reasoning Trace');
    await editor.choose('+1');
    assert.match(await shown(), /^train-000002-/);
    const words = await text();
    assert.match(words, /run lake · step 2 · training/);
    assert.match(words, /success · score \+1 · return \+1 · penalty 0 · advantage/);
    assert.match(words, /## Turn 1 · reward/);
    await status(/log-prob −/).waitFor();
    await lens('what if').waitFor();
  },
);

scenario('turns fold, and the outline lists states, thoughts and actions', async () => {
  await editor.command('Fold All');
  await until('folded sections', async () => !(await text()).includes('Walk over the frozen lake'));
  await editor.command('Unfold All');
  await until('unfolded sections', async () => (await text()).includes('Walk over the frozen lake'));
  await editor.command('Go to Symbol in Editor');
  const symbols = editor.page.locator('.quick-input-list .monaco-list-row');
  const names = await until('the outline', async () => {
    const labels = await symbols.evaluateAll(rows => rows.map(row => row.getAttribute('aria-label')));
    return labels.some(label => /Turn 1/.test(label)) && labels.join(' | ');
  });
  for (const name of ['Prompt', 'Turn 1', 'State', 'Answer', 'Thought', 'Outcome'])
    assert.match(names, new RegExp(name));
  await editor.page.keyboard.press('Escape');
});

scenario('overlays change by key and by the status bar, and colour the tokens', async () => {
  await shown();
  const painted = () =>
    editor.page.evaluate(
      () =>
        [...document.querySelectorAll('.view-overlays [class*="ced-"]')].filter(
          element => getComputedStyle(element).backgroundColor !== 'rgba(0, 0, 0, 0)',
        ).length,
    );
  await until('shaded tokens', async () => (await painted()) > 0);
  for (const name of [/entropy/, /advantage/]) {
    await editor.page.keyboard.press('Alt+.');
    await status(name).waitFor();
  }
  await until('shades of the advantage', async () => (await painted()) > 0); // adjacent equal tokens share an element
  await status(/advantage/).click();
  await take('none');
  await until('no shades', async () => (await painted()) === 0);
  await status(/none/).click();
  await take('log-prob');
  await status(/log-prob −/).waitFor();
});

scenario('hovering shows the card of a token and the board of a state', async () => {
  await shown();
  const card = await hover('</think>', 'table');
  assert.match(card, /id \d+ · token \d+ of \d+/);
  assert.match(card, /log-prob at sampling[\s\S]*advantage[\s\S]*loss mask/);
  await editor.picture('traces-card-dark');
  await hover('____', 'img');
  await editor.keep('traces-board-dark');
});

scenario('keys and code lenses jump to the turns and to the previous, next, best and worst episode', async () => {
  const first = await shown();
  await editor.page.keyboard.press('Alt+]');
  await editor.page.locator('.statusbar-item', { hasText: /Ln 1[5-9]/ }).waitFor(); // the first turn's heading
  await editor.page.keyboard.press('Shift+Alt+]');
  await editor.page
    .getByRole('tab', { name: /g0/ })
    .filter({ hasNotText: shortName(first) })
    .waitFor();
  assert.notEqual(await shown(), first);
  const members = editor.page.locator('.quick-input-list .monaco-list-row');
  await editor.takeLens(lens('worst 0'), () => reads(/no success · score 0/));
  await editor.takeLens(lens('group of 8'), () => members.nth(7).isVisible());
  await editor.choose('+1');
  await until('a member that succeeded', () => reads(/\nsuccess · score \+1/));
});

scenario('the same prompt is found at earlier and later steps', async () => {
  await editor.command('RAGEN: Open Reasoning Trace');
  await take('validation 2');
  await until('a validation episode', async () => (await header())?.startsWith('val-000002-'));
  const id = await shown();
  await editor.takeLens(lens('same prompt earlier'), async () => (await header()) === id.replace('000002', '000001'));
  await editor.takeLens(lens('later'), async () => (await header()) === id);
});

scenario('two episodes open in the diff editor', async () => {
  const others = editor.page.locator('.quick-input-list .monaco-list-row');
  await editor.takeLens(lens('compare'), () => others.nth(1).isVisible());
  await others.nth(1).click();
  await editor.page.locator('.monaco-diff-editor .view-line', { hasText: 'Turn' }).first().waitFor();
  await editor.page.getByRole('tab', { name: /↔/ }).waitFor();
  await editor.picture('traces-diff-dark');
  await editor.command('View: Close Editor');
});

const dialog = () =>
  editor.page.locator('.monaco-dialog-box', { hasText: 'Run the code of “lake”, which your trainer did not sign?' });
const press = name => dialog().getByRole('button', { name }).click();
const tab = name => editor.page.getByRole('tab', { name });
const same = async () => {
  await editor.page.locator('.notification-toast', { hasText: /every turn gave the same state and reward/ }).waitFor();
  await editor.command('Notifications: Clear All Notifications');
};

scenario(
  'a run of another user is replayed only after its manifest was shown and accepted, once or permanently',
  async () => {
    await editor.command('RAGEN: Open Reasoning Trace');
    await editor.choose('+1');
    await shown();
    const ask = async () => {
      await editor.command('RAGEN: Replay Episode');
      await dialog().waitFor();
      await tab('manifest.json').waitFor();
    };
    await ask();
    assert.match(
      plain(await dialog().innerText()),
      /manifest\.json\s+sha256 [0-9a-f]{64}\s+The run uses:\s+environment \w+/,
    );
    await editor.picture('trust-manifest-dark');
    await press('Cancel');
    await tab('manifest.json').click(); // the manifest stays open in the editor
    await editor.page.keyboard.type('x');
    assert.doesNotMatch(await editor.page.title(), /●/);
    await editor.command('View: Close Editor');
    assert.equal(await editor.page.locator('.notification-toast', { hasText: 'every turn' }).count(), 0);
    await shown();
    await ask();
    await press('Run Once');
    await same();
    await shown();
    await ask();
    await press('Trust This Run’s Code');
    await same();
  },
);

scenario('the replay of an unchanged environment reports that it reproduces the episode', async () => {
  await editor.command('RAGEN: Open Reasoning Trace');
  await editor.choose('+1');
  await shown();
  await editor.command('RAGEN: Replay Episode');
  await same();
});

scenario('the source stored with a run is shown, and is executed only after consent', async () => {
  await editor.takeLens(lens('what if'), () => dialog().isVisible());
  assert.match(plain(await dialog().innerText()), /environment\.js\s+sha256 [0-9a-f]{64}/);
  await tab('environment.js').waitFor();
  await editor.page.locator('.view-line', { hasText: 'defProp' }).first().waitFor();
  await editor.picture('trust-code-dark');
  await press('Cancel');
  await dialog().waitFor({ state: 'detached' });
  await atRest(editor.page);
  assert.equal(await editor.page.locator('.quick-input-widget', { hasText: 'What if… turn' }).isVisible(), false);
  for (const name of ['environment.js', 'version.json']) {
    await tab(name).click();
    await editor.command('View: Close Editor');
  }
});

scenario('the environment’s source shows statistics of its code', async () => {
  await editor.command('Go to File');
  const input = editor.page.locator('.quick-input-widget input.input');
  await input.fill('envs/frozen-lake/index.ts');
  await editor.page.locator('.quick-input-list .monaco-list-row', { hasText: 'index.ts' }).first().click();
  await editor.page.getByRole('tab', { name: /^index\.ts/ }).waitFor();
  const source = readFileSync(join(root, 'envs/frozen-lake/index.ts'), 'utf8').split('\n');
  await editor.command('Go to Line');
  await editor.answer(`:${source.findIndex(line => line.includes('reset({'))}`);
  await lens(/lake: return \+0\.\d+ · success \d/).waitFor();
  await lens(/lake: version [0-9a-f]{8} · 256 episodes in steps 1–2/).waitFor();
  await editor.keep('traces-environment-dark');
  await editor.command('View: Close Editor');
});

scenario('a trace is restored after a reload, in every theme', async () => {
  const id = await shown();
  await editor.reload();
  assert.equal(await shown(), id);
  await status(/log-prob −/).waitFor();
  for (const theme of ['light', 'contrast']) {
    await editor.theme(theme);
    assert.equal(await shown(), id);
    await lens('what if').waitFor();
    await editor.keep(`traces-${theme}`);
  }
});
