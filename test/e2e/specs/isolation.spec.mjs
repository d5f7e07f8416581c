// In an untrusted folder, no command starts a process, and no text becomes markup, a link, a command or an icon,
// neither on pages nor on the editor's own surfaces. After the folder is trusted, the same commands start processes,
// which proves that the detectors work. The detectors are a Node wrapper that logs each call, a marker in the
// environment's code, and the run's socket.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { env, execPath } from 'node:process';
import { after, before } from 'node:test';
import jsonrpc from 'vscode-jsonrpc/node';
import { atRest } from '../at-rest.mjs';
import { Editor, makeWorkspace, scenarios, until } from '../editor.mjs';
import { makeHostileRun } from '../fixtures/hostile-run.mjs';
import { makeRun, touchLease } from '../fixtures/make-run.mjs';
import { editorMarkup, markupCorpus, pageMarkup } from '../fixtures/markup-corpus.mjs';

/** The first comment of a configuration is shown in the lists and hovers that name it. */
const configuration = `# ${editorMarkup[2]} ${pageMarkup[0]} ${editorMarkup[0]} $(bug)
defaults:
  - quickstart
  - _self_

trainer:
  experiment_name: strange
`;
const key = 'hf_kept_0123456789abcdef';
const asItCame = 'as it came\n';
const workspace = makeWorkspace({ 'config/strange.yaml': configuration, '.ragen/types/zod.d.ts': asItCame });
const started = join(workspace, 'started');
const tools = mkdtempSync(join(tmpdir(), 'ragen-isolation-'));
const calls = join(tools, 'calls');
const run = makeHostileRun(workspace, { id: 'z-hostile', state: 'running', step: 12, seed: 3, ago_s: 60 });
const [requests, dialogs] = [[], []];
let [editor, heart, trainer, joined] = [undefined, undefined, undefined, 0];
const scenario = scenarios(() => editor);

/** Source text in ASCII, so that the editor shows no warning about unusual characters. */
const escaped = text =>
  text.replace(/[^\x20-\x7e]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
const environment = `import { writeFileSync } from 'node:fs';
import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
writeFileSync(${JSON.stringify(started)}, 'loaded');
const texts: string[] = ${escaped(JSON.stringify(markupCorpus))};
const all = texts.join('\\n');
export default defineEnvironment({
  name: 'strange',
  config: z.object({}),
  instruction: all,
  actions: Object.fromEntries(texts.slice(0, 12).map((text, i) => [i + 1, text])),
  legend: () => Object.fromEntries(texts.map(text => [text, text])),
  create: () => ({
    reset: () => ({ observation: all }),
    step: () => ({ observation: all, reward: 0, terminated: false, truncated: false, info: { note: all } }),
  }),
});
`;

/** A Node wrapper that logs its arguments and whether it received the stored key. */
function tellingNode(file, whose) {
  writeFileSync(
    file,
    `#!/bin/sh\nprintf '%s\\n' "${whose} $* \${HF_TOKEN:-no key}" >> '${calls}'\nexec '${execPath}' "$@"\n`,
  );
  chmodSync(file, 0o755);
  return file;
}

/** Listens on the run's socket in place of a trainer, and implements only the messages of the live view. */
function listen() {
  const status = JSON.parse(readFileSync(join(run, 'status.json'), 'utf8'));
  const [line] = readFileSync(join(run, 'episodes', 'step-000012.jsonl'), 'utf8').split('\n');
  const { turns, final_state: state, ...episode } = JSON.parse(line);
  const watched = turns.map(turn => ({
    ...{ turn: turn.turn, state: turn.state, actions_left: 1, prefix: '<think>' },
    tokens: markupCorpus.map(text => ({ text, logprob: -1 })),
    outcome: { thought: turn.thought, answer: turn.answer, executed: turn.executed, reward: 0, penalty: 0 },
  }));
  trainer = createServer(socket => {
    joined++;
    const { createMessageConnection, SocketMessageReader, SocketMessageWriter } = jsonrpc;
    const connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket));
    socket.on('error', () => undefined);
    connection.onRequest('ragen/hello', () => ({ run: basename(run), pid: process.pid, status }));
    connection.onRequest('ragen/watch', () => ({
      tags: markupCorpus,
      episode: { ...episode, over: true, turns: watched, state },
    }));
    connection.listen();
  });
  return new Promise(resolve => trainer.listen(join(run, 'socket'), resolve));
}

before(async () => {
  for (const folder of ['.vscode', 'envs']) mkdirSync(join(workspace, folder));
  writeFileSync(join(workspace, 'envs', 'strange.ts'), environment);
  makeRun(workspace, { id: 'a-second', name: 'second', state: 'stopped', step: 3, ago_s: 9000 });
  const strange = tellingNode(join(workspace, 'strange-node'), 'strange');
  writeFileSync(join(workspace, '.vscode', 'settings.json'), JSON.stringify({ 'ragen.nodePath': strange }));
  writeFileSync(calls, '');
  tellingNode(join(tools, 'node'), 'own');
  env.PATH = `${tools}:${env.PATH}`;
  await listen();
  touchLease(run);
  heart = setInterval(() => touchLease(run), 1000);
  editor = await Editor.start(workspace, { restricted: true, settings: { 'editor.unusualLineTerminators': 'off' } });
  editor.page.on('request', request => requests.push(request.url()));
  editor.page.on('dialog', dialog => dialogs.push(dialog.message()));
});
after(async () => {
  clearInterval(heart);
  await editor?.stop();
  trainer?.close();
  for (const folder of [workspace, tools]) rmSync(folder, { recursive: true, force: true });
});

/**
 * Asserts that no text became an element in any document of the window, no address in a text was fetched, and no script
 * ran.
 */
async function harmless(where) {
  for (const frame of editor.page.frames()) {
    const found = await frame
      .evaluate(() => ({
        ran: window.harmed,
        made: [...document.querySelectorAll('[data-harmed], [name=harmed], [id=harmed]')].map(each => each.outerHTML),
        links: [...document.querySelectorAll('a')]
          .filter(link => /harmed/.test(`${link.getAttribute('href')} ${link.dataset.href} ${link.title}`))
          .map(each => each.outerHTML),
        pictures: [...document.images].filter(({ src }) => src.includes('harmed')).map(each => each.outerHTML),
        icons: [...document.querySelectorAll('.codicon-bug, .codicon-flame')].map(
          each => each.parentElement.textContent,
        ),
      }))
      .catch(() => undefined); // the frame is being removed
    if (found) assert.deepEqual(found, { ran: undefined, made: [], links: [], pictures: [], icons: [] }, where);
  }
  assert.deepEqual(
    requests.filter(url => url.includes('harmed')),
    [],
    where,
  );
  assert.deepEqual(dialogs, [], where);
}
const toast = text => editor.page.locator('.notification-toast', { hasText: text }).first();
const plain = text => text.replaceAll('\u2060', '').replaceAll('\u00a0', ' ');
/** Returns the doctor's report once it matches `words`. */
const report = words =>
  until('the report', async () => {
    const text = editor.page.locator('.editor-instance .view-lines', { hasText: 'RAGEN Doctor:' }).first();
    const shown = (await text.isVisible()) ? plain(await text.innerText()) : '';
    return words.test(shown) && shown;
  });
/** Opens a file of the workspace. */
async function open(file) {
  await editor.command('Go to File');
  await editor.page.locator('.quick-input-widget input.input').fill(file);
  await editor.choose(file);
  await editor.page.getByRole('tab', { name: new RegExp(`^${file}`) }).waitFor();
}
const rows = () => editor.page.locator('.quick-input-list .monaco-list-row');
/** Whether the palette offers a command. */
async function offered(title) {
  await editor.page.keyboard.press('F1');
  await editor.page.locator('.quick-input-widget input.input').fill(`>${title}`);
  await rows().first().waitFor();
  await atRest(editor.page); // waits for the list, which is filtered after the input
  const titles = await rows().allInnerTexts();
  await editor.page.keyboard.press('Escape');
  return titles.some(each => each.includes(title));
}
const cleared = () => editor.command('Notifications: Clear All Notifications');

scenario('an untrusted folder starts nothing, whatever command is used', async () => {
  await editor.page.locator('.statusbar-item', { hasText: 'Restricted Mode' }).waitFor();
  const items = await editor.showRuns();
  await until('both runs', async () => (await items.count()) >= 4);
  for (const command of ['Start Run', 'New Run', 'Pause']) {
    await editor.command(`RAGEN: ${command}`);
    await toast('not trusted').waitFor();
    await cleared();
  }
  for (const command of ['Play Environment', 'New Environment', 'Duplicate with Changes', 'Watch Live'])
    assert.equal(await offered(`RAGEN: ${command}`), false, command);
  await open('strange.yaml');
  await editor.page.locator('.codelens-decoration a', { hasText: 'Start run' }).waitFor();
  for (const title of ['Start run', 'Check', 'Resolved configuration']) {
    await editor.page.locator('.codelens-decoration a', { hasText: title }).click();
    await toast('not trusted').waitFor();
    await cleared();
  }
  await editor.page.locator('.view-line').first().click();
  await editor.page.keyboard.press('Control+End');
  await editor.page.keyboard.type('\n');
  await editor.page.keyboard.press('Control+S'); // a save triggers a check if checks are allowed
  await open('strange.ts');
  assert.equal(await offered('RAGEN: Check Environment'), false);
  await editor.command('Test: Run All Tests');
  await editor.command('View: Hide Panel');
  await editor.command('RAGEN: Doctor');
  const told = await report(/✗ Trust +the workspace is not trusted, so nothing can be started/);
  assert.doesNotMatch(told, /Node +\d|onnxruntime/);
  await editor.command('RAGEN: Open Reasoning Trace');
  await editor.choose('z-hostile', 5000).catch(() => undefined); // no list appears when a run's document has the focus
  await editor.choose('seed ');
  await editor.page.locator('.codelens-decoration a', { hasText: 'replay' }).first().click();
  await toast('not trusted').waitFor();
  await cleared();
  await editor.command('RAGEN: Score Trace');
  await toast('not trusted').waitFor();
  await atRest(editor.page);
  assert.equal(readFileSync(calls, 'utf8'), '');
  assert.equal(existsSync(started), false);
  assert.equal(joined, 0);
  assert.equal(readFileSync(join(workspace, '.ragen/types/zod.d.ts'), 'utf8'), asItCame);
  await cleared();
});

scenario(
  'texts of an untrusted folder stay plain text in tree, status bar, lists, prompts, hovers and notifications',
  async () => {
    const item = editor.page.locator('.part.sidebar').getByRole('treeitem', { name: /click me/ });
    await harmless('the tree');
    await item.hover();
    const tooltip = editor.page.locator('.monaco-hover:not(.hidden)', { hasText: 'Configuration' }).last();
    await tooltip.waitFor();
    assert.match(plain(await tooltip.innerText()), /\[click me\]\(command:/);
    await harmless('the tooltip of a run');
    const status = editor.page.locator('.statusbar-item', { hasText: 'click me' });
    assert.match(plain(await status.innerText()), /\[click me\]\(command:.*\$\(bug\) <img src=x/);
    await harmless('the status bar');
    await editor.command('RAGEN: Compare Configurations');
    await rows().filter({ hasText: 'click me' }).waitFor();
    await harmless('a list of runs');
    await editor.page.keyboard.press('Escape');
    const prompt = editor.page.locator('.quick-input-message', { hasText: 'click me' });
    await editor.takeFromMenu(item, 'Rename', () => prompt.isVisible());
    assert.equal(await prompt.locator('a').count(), 0);
    await harmless('a prompt');
    await editor.page.keyboard.press('Escape');
    await editor.page.keyboard.press('Escape');
    await tokens();
    await editor.command('RAGEN: Show Configuration');
    await harmless('the configuration of a run');
    // A failing run triggers a notification.
    const file = join(run, 'status.json');
    const before = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...before, state: 'failed' }));
    const failed = toast('failed');
    await failed.waitFor();
    assert.match(plain(await failed.innerText()), /Run \[click me\]\(command:/);
    assert.equal(await failed.locator('.notification-list-item-message a').count(), 0);
    await harmless('a notification');
    await editor.picture('isolation-notification');
    writeFileSync(file, JSON.stringify(before));
    await cleared();
  },
);

/** Opens the token cards, states and refused actions of the open trace. */
async function tokens() {
  const tab = editor.page.getByRole('tab', { name: /g\d+-m\d+/ });
  await tab.first().click();
  await editor.page
    .locator('.editor-instance .view-lines')
    .first()
    .click({ position: { x: 300, y: 60 } });
  await editor.page.keyboard.press('Alt+]'); // moves to the first turn
  let cards = 0;
  for (let y = 200; y < 780; y += 58) {
    await editor.page.mouse.move(900, 60);
    await editor.page.mouse.move(520, y, { steps: 3 });
    const card = editor.page.locator('.monaco-hover:not(.hidden)', { hasText: 'log-prob at sampling' }).first();
    cards += Number(
      await card.waitFor({ timeout: 1200 }).then(
        () => true,
        () => false,
      ),
    );
    await harmless(`a hover at ${y}`);
  }
  assert.ok(cards > 0, 'no token showed its card');
}

scenario('texts of an untrusted folder stay plain text on the pages of a run and in a comparison', async () => {
  await editor.command('View: Close All Editors');
  await editor.page
    .locator('.part.sidebar')
    .getByRole('treeitem', { name: /click me/ })
    .click();
  const dashboard = await editor.webview('canvas');
  await dashboard.getByText('[click me]').first().waitFor();
  for (const fold of await dashboard.locator('.fold').all()) await fold.dispatchEvent('click');
  await dashboard.getByText(pageMarkup[0]).first().waitFor();
  await harmless('the dashboard');
  await editor.command('RAGEN: Open Episodes');
  const episodes = await editor.webview('.episode-row');
  for (const at of [0, 3, 7]) {
    await episodes.locator('.episode-row').nth(at).click();
    await episodes.getByText('harmed').first().waitFor();
    await harmless('an episode');
  }
  await editor.command('RAGEN: Open Collapse Page');
  const collapse = await editor.webview('.matrix');
  await collapse.getByText('harmed').first().waitFor();
  await harmless('the collapse page');
  await editor.command('RAGEN: Compare Runs');
  for (const run of ['z-hostile', 'a-second']) {
    const box = rows()
      .filter({ hasText: run })
      .locator('.quick-input-list-checkbox, .monaco-checkbox, input[type=checkbox]')
      .first();
    if (!(await box.isChecked().catch(() => false))) await box.click();
  }
  await harmless('a list to tick');
  await editor.page.locator('.quick-input-widget').getByRole('button', { name: 'OK' }).click();
  const compare = await editor.webview('.compare-table');
  await compare.locator('.compare-table', { hasText: '[click me]' }).waitFor();
  await harmless('the comparison');
});

scenario('after the folder is trusted, the same commands start processes, and texts stay plain text', async () => {
  await editor.command('Workspaces: Manage Workspace Trust');
  await editor.page
    .locator('.workspace-trust-editor')
    .getByRole('button', { name: 'Trust', exact: true })
    .first()
    .click();
  await until('the editor joins the trainer', () => joined > 0);
  await until(
    'types that are the extension’s',
    () => readFileSync(join(workspace, '.ragen/types/zod.d.ts'), 'utf8') !== asItCame,
  );
  await editor.command('RAGEN: Watch Live');
  const live = await editor.webview('.live-turns');
  await live.getByText('harmed').first().waitFor();
  await harmless('the live view');
  await editor.command('RAGEN: Store API Key');
  await editor.choose('HF_TOKEN');
  await editor.answer(key);
  await editor.page.locator('.statusbar-item', { hasText: 'HF_TOKEN stored' }).waitFor();
  await editor.command('RAGEN: Play Environment');
  await editor.choose('strange.ts');
  const play = await editor.webview('.observation');
  await play.getByText('harmed').first().waitFor();
  await play.locator('.action').first().click();
  await harmless('the Play panel');
  assert.equal(existsSync(started), true);
  assert.match(readFileSync(calls, 'utf8'), new RegExp(`^strange .*cli\\.cjs env play .* ${key}$`, 'm'));
  await editor.command('RAGEN: New Run');
  await editor.webview('.estimate-row');
  await harmless('the form of a new run');
  await editor.command('RAGEN: Doctor');
  const told = await report(/✓ onnxruntime/);
  assert.match(told, /✓ Keys +HF_TOKEN, stored by the editor/);
  assert.equal(told.includes(key), false);
});
