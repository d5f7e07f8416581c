// Environment tools in the real editor: an environment is created, played, edited, checked and fixed. Saves screenshots
// in light and dark to test-results/.
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { root } from '../install.mjs';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';

const workspace = makeWorkspace({ 'notes.md': '# Notes\n' });
const source = join(workspace, 'envs/maze/maze.ts');
let editor;
const scenario = scenarios(() => editor);
// The server of the tests lacks the TypeScript of the editor, so it uses that of this repository.
const settings = { 'typescript.tsdk': join(root, 'node_modules', 'typescript', 'lib') };
before(async () => (editor = await Editor.start(workspace, { settings })));
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const edit = (from, to) => {
  const text = readFileSync(source, 'utf8');
  assert.ok(text.includes(from), from);
  writeFileSync(source, text.replace(from, to));
};
const page = () => editor.webview('.play');
const board = async () => (await page()).locator('.observation pre').innerText();
const press = async (...keys) => {
  const frame = await page();
  for (const key of keys) {
    const before = await frame.locator('.step-row').count();
    await frame.locator('.play-board').click({ position: { x: 4, y: 4 } });
    await editor.page.keyboard.press(key);
    await until(`a step by ${key}`, async () => (await frame.locator('.step-row').count()) !== before, 20_000);
  }
};

scenario('New Environment writes code, cases and a configuration, and opens the code without errors', async () => {
  await editor.command('RAGEN: New Environment');
  await editor.answer('maze');
  await editor.page.getByRole('tab', { name: /maze\.ts/ }).waitFor();
  const written = file => readFileSync(join(workspace, file), 'utf8');
  assert.match(written('envs/maze/maze.ts'), /export default defineEnvironment\(/);
  assert.ok(JSON.parse(written('envs/maze/maze.cases.json')).length > 0);
  assert.match(written('config/maze.yaml'), /env_type: envs\/maze\/maze\.ts/);
  assert.match(written('envs/tsconfig.json'), /"ragen-workbench\/\*"/);
  await editor.command('View: Focus Problems');
  await editor.page.locator('.markers-panel', { hasText: 'No problems have been detected' }).waitFor();
  await editor.picture('environment-new-dark');
});

scenario('environment code has the completion and the hover help of TypeScript', async () => {
  const lines = readFileSync(source, 'utf8').split('\n');
  const line = lines.findIndex(each => each.includes('player = [random.integers('));
  const goTo = async text => {
    await editor.command('Go to Line/Column');
    await editor.answer(`:${line + 1}:${lines[line].indexOf(text) + text.length + 1}`);
  };
  await editor.page.getByRole('tab', { name: /maze\.ts/ }).click();
  await goTo('[random.');
  // Until TypeScript has started, the editor suggests words of the file and has no hover.
  const shows = (command, locator) =>
    until(`what ${command} shows`, async () => {
      await editor.page.keyboard.press('Escape');
      await editor.command(command);
      return locator.waitFor({ timeout: 3000 }).then(
        () => true,
        () => false,
      );
    });
  await shows(
    'Trigger Suggest',
    editor.page.locator('.suggest-widget .monaco-list-row', { hasText: 'integers' }).first(),
  );
  await editor.page.keyboard.press('Escape');
  await goTo('[random.integ');
  await shows('Show or Focus Hover', editor.page.locator('.monaco-hover', { hasText: /Pcg64\.integers\(/ }).first());
  await editor.picture('environment-hover-dark');
});

scenario('Play Environment accepts keys and buttons, undoes, hints and solves', async () => {
  await editor.command('RAGEN: Play Environment');
  await editor.choose('maze.ts');
  const frame = await page();
  assert.equal(await board(), '__#_\n_G__\n_#__\nP___');
  await press('ArrowLeft', 'w');
  assert.equal(await board(), '__#_\n_G__\nP#__\n____');
  await frame.getByText('no effect').waitFor();
  await frame.getByRole('button', { name: 'Hint' }).click();
  await frame.locator('.hint', { hasText: 'Up · Right' }).waitFor();
  await press('u');
  assert.equal(await board(), '__#_\n_G__\n_#__\nP___');
  await frame.locator('.action', { hasText: 'Up' }).click();
  await frame.locator('.step-row', { hasText: 'Up' }).waitFor();
  await frame.getByRole('button', { name: 'Solve' }).click();
  await frame.locator('.end.success', { hasText: 'Terminated' }).waitFor();
  await frame.getByText('+0.960').first().waitFor();
  await editor.command('View: Toggle Panel Visibility');
  await editor.picture('environment-play-dark');
});

scenario('an edit offers to reload, and replaying the episode on the new code shows the differences', async () => {
  const frame = await page();
  await editor.page.getByRole('tab', { name: /^maze\.ts/ }).click();
  await editor.page.keyboard.press('Control+End');
  await editor.page.keyboard.type('// edited');
  await editor.page.keyboard.press('Control+s');
  await frame.locator('.play-message', { hasText: 'maze.ts was saved' }).waitFor();
  edit('step_reward: z.number().default(-0.01)', 'step_reward: z.number().default(-0.05)');
  await frame.getByRole('button', { name: 'Reload' }).first().click();
  await frame.locator('.differences', { hasText: 'step 1 · reward' }).waitFor();
  await frame.getByText('-0.05').first().waitFor();
  await editor.picture('environment-reload-dark');
  edit('default(-0.05)', 'default(-0.01)');
});

scenario('a built-in environment with text actions is played by typing, in the light theme', async () => {
  await editor.theme('light');
  await editor.command('View: Close All Editors');
  await editor.command('RAGEN: Play Environment');
  await editor.typeAndChoose('countdown');
  const frame = await page();
  const text = await board();
  assert.match(text, /^Target: \d+, nums: \[/);
  await frame.locator('.answer input').fill('1 + 1');
  await editor.picture('environment-answer-light');
  await editor.page.keyboard.press('Enter');
  await frame.locator('.end', { hasText: 'Terminated' }).waitFor();
  await editor.command('RAGEN: Play Environment');
  await editor.typeAndChoose('sokoban');
  const rooms = await until('the room', async () => {
    const shown = await editor.webview('.board-text');
    return (await shown.locator('.board-text').innerText()).includes('#') ? shown : undefined;
  });
  await rooms.getByRole('button', { name: 'Solve' }).click();
  await rooms.locator('.end.success').waitFor();
  await editor.picture('environment-sokoban-light');
});

scenario('Check Environment passes a correct environment and marks the line of a faulty one', async () => {
  await editor.command('View: Close All Editors');
  await editor.page.getByRole('treeitem', { name: 'maze.ts', exact: true }).dblclick();
  await editor.page.getByRole('tab', { name: /^maze\.ts/ }).waitFor();
  await editor.command('RAGEN: Check Environment');
  await editor.page.locator('.statusbar-item', { hasText: /maze: \d+ checks passed/ }).waitFor();
  edit('const success = reached();', "const success = reached();\n        if (success) throw new Error('not yet');");
  await editor.command('RAGEN: Check Environment');
  const toast = editor.page.locator('.notification-toast', { hasText: /Environment maze fails \d+ of \d+ checks/ });
  await toast.waitFor();
  await toast.getByRole('button', { name: 'Show Problems' }).click();
  await editor.page.locator('.markers-panel', { hasText: 'every call returns' }).waitFor();
  await editor.command('Testing: Focus on Test Explorer View');
  await editor.page
    .locator('.test-explorer')
    .getByRole('treeitem', { name: /maze\.ts/ })
    .first()
    .click();
  await editor.page.keyboard.press('ArrowRight');
  await editor.page
    .locator('.test-explorer')
    .getByRole('treeitem', { name: /^every call returns/ })
    .first()
    .waitFor();
  await editor.picture('environment-check-light');
  await editor.theme('dark');
  await editor.picture('environment-check-dark');
});
