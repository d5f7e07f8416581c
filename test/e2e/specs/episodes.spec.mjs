// Episodes page in the real editor, on a real run without an episode index: list, filter, sort, full-text search, a
// prompt group side by side, and a prompt over training. Saves screenshots in three themes. With LARGE_RUN=<folder of
// test/bench/episode-runs.mjs> the test also opens that run of 100,000 episodes, searches it, and prints the duration
// of each.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before } from 'node:test';
import { env } from 'node:process';
import { Editor, makeWorkspace, saveGif, scenarios, until } from '../editor.mjs';
import { restoreRun } from '../fixtures/stored-run.mjs';

const workspace = makeWorkspace();
let editor;
const scenario = scenarios(() => editor);
before(async () => {
  restoreRun(workspace, 'lake-run');
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const page = () => editor.webview('.episode-row');
const facts = async () => (await page()).locator('.list-facts').innerText();
const filter = async line => (await page()).locator('.filter input').fill(line);
const says = (what, pattern) => until(what, async () => pattern.test(await facts()), 30_000);

scenario('lists the episodes of all steps, filters and sorts them', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Open Episodes');
  await editor.command('View: Close Primary Side Bar');
  const frame = await page();
  await says('all training episodes', /^96 episodes · /);
  await filter('step:12..24 success:true tokens<200');
  await says('some of them', /^\d+ of 96 episodes · 100 % success$/);
  await filter('');
  await frame.locator('.list-head [aria-label="Sort by tokens"]').click();
  const tokens = await frame.locator('.episode-row .number:nth-of-type(6)').allInnerTexts();
  assert.deepEqual(
    tokens,
    [...tokens].sort((a, b) => Number(b) - Number(a)),
  );
  await frame.locator('.list-head [aria-label="Sort by tokens"]').click();
  await frame.locator('.list-head [aria-label="Sort by tokens"]').click();
});

scenario('finds words in the texts of all episodes', async () => {
  await filter('mode:val text:"i GUESS down"');
  await says('what was found', /^[1-9]\d* of 123 episodes/);
  const frame = await page();
  await frame.locator('.episode-row').last().click();
  await frame.locator('.turn', { hasText: 'I guess Down' }).first().waitFor();
});

scenario('finds a text in the episodes of all runs and opens the episode at its turn', async () => {
  await filter('');
  await editor.command('RAGEN: Search Episodes');
  await editor.page.locator('.quick-input-widget input.input').fill('i GUESS down');
  const hits = editor.page.locator('.quick-input-list .monaco-list-row', { hasText: 'I guess Down' });
  await hits.first().waitFor();
  await until('the end of the search', async () =>
    /\d+ episodes$/.test(await editor.page.locator('.quick-input-title').innerText()),
  );
  await hits.first().click();
  const frame = await page();
  await frame.locator('.turn', { hasText: 'I guess Down' }).first().waitFor();
});

scenario('shows a prompt group side by side and moves through its members by keys', async () => {
  await filter('step:32 group:1');
  const frame = await page();
  await frame.locator('.episode-row').first().click();
  await editor.page.keyboard.press('g');
  await until('eight columns', async () => (await frame.locator('.grid-head').count()) === 8);
  await editor.page.keyboard.press('j');
  await until('the next member', async () => /member 1/.test(await frame.locator('.grid-head.current').innerText()));
  assert.ok((await frame.locator('.thought mark').count()) > 0);
  await editor.theme('dark');
  await editor.keep('episodes-group-dark');
});

scenario('plays an episode turn by turn and exports it as a GIF', async () => {
  const frame = await page();
  await editor.page.keyboard.press('p');
  await frame.locator('.player-stage').waitFor();
  await editor.page.keyboard.press('Home');
  const title = () => frame.locator('.player-title').innerText();
  await until('the first turn', async () => /^Turn 1 of/.test(await title()));
  await editor.page.keyboard.press('End');
  await until('the end', async () => (await title()) === 'End');
  const gif = await saveGif(editor, frame, workspace);
  assert.equal(gif.toString('latin1', 0, 6), 'GIF89a');
});

scenario('scrubs through the validations of one prompt', async () => {
  await filter('mode:val step:32 group:1');
  const frame = await page();
  await says('the one', /^1 of 123 episodes/);
  await frame.locator('.episode-row').first().click();
  await editor.page.keyboard.press('t');
  await until('nine times', async () => /^validation 32 · 9 of 9/.test(await frame.locator('.where').innerText()));
  await frame.locator('.grid-cell', { hasText: 'I guess Down.' }).first().waitFor();
  for (const theme of ['dark', 'light', 'contrast']) {
    await editor.theme(theme);
    await editor.keep(`episodes-${theme}`);
  }
  await editor.page.keyboard.press('[');
  await until('the time before', async () => /^validation 28 · 8 of 9/.test(await frame.locator('.where').innerText()));
});

if (env.LARGE_RUN)
  scenario('lists and searches 100,000 episodes', async () => {
    await editor.stop();
    editor = await Editor.start(env.LARGE_RUN);
    await editor.showRuns();
    await editor.command('RAGEN: Open Episodes');
    const asked = Date.now();
    const frame = await editor.webview('.skeleton-rows, .episode-row');
    const drawn = Date.now();
    await frame.locator('.list-facts', { hasText: /^100.k episodes/ }).waitFor();
    const listed = Date.now();
    console.log(`list: ${listed - asked} ms after the command, ${listed - drawn} ms after the empty page`);
    for (const word of ['stuck because', 'nowhere to be found']) {
      const began = Date.now();
      await frame.locator('.filter input').fill(`text:"${word}"`);
      await until(
        'its end',
        async () => /of 100.k episodes(?!.*searched)/.test(await frame.locator('.list-facts').innerText()),
        60_000,
      );
      console.log(`search “${word}”: ${Date.now() - began} ms, ${await frame.locator('.list-facts').innerText()}`);
    }
  });
