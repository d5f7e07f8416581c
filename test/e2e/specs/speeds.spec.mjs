// How long a person waits for the pages of a run at rest: the first page of a window, further pages, a return to a tab,
// and a reload. The times are printed beside the times that docs/PERFORMANCE.md promises, and are not asserted, because
// they depend on the machine.
import { rmSync } from 'node:fs';
import { loadavg } from 'node:os';
import { after, before } from 'node:test';
import { atRest } from '../at-rest.mjs';
import { Editor, makeWorkspace, scenarios } from '../editor.mjs';
import { restoreRun } from '../fixtures/stored-run.mjs';

const workspace = makeWorkspace();
let editor;
const scenario = scenarios(() => editor);
before(async () => {
  restoreRun(workspace, 'collapsing-run');
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

/** Performs an action and returns the milliseconds until a page shows `selector`. */
async function timed(selector, action) {
  const began = performance.now();
  await action();
  await editor.webview(selector, 10);
  return performance.now() - began;
}
const told = (what, ms, promised) =>
  console.log(
    `${what}: ${ms.toFixed(0)} ms of ${promised} ms (${(ms / promised).toFixed(2)}), load ${loadavg()[0].toFixed(1)}`,
  );

/** Returns the milliseconds from the choice of a command in the palette until a page shows `selector`. */
async function byCommand(title, selector) {
  await editor.command(title);
  await editor.webview(selector, 10);
  return performance.now() - editor.chosen;
}

const pages = [
  ['RAGEN: Open Dashboard', '.chart canvas'],
  ['RAGEN: Open Episodes', '.list-facts'],
  ['RAGEN: Open Collapse Page', 'run-plane svg'],
  ['RAGEN: Open Log', '.entry'],
];

scenario('the pages of a run are drawn soon after the command', async () => {
  await editor.showRuns();
  await editor.page.locator('.statusbar-item', { hasText: 'Activating' }).waitFor({ state: 'detached' });
  await atRest(editor.page, { quietMs: 3000 });
  for (const [i, [title, selector]] of pages.entries())
    told(
      i === 0 ? `${title}, first page of the window` : title,
      await byCommand(title, selector),
      i === 0 ? 1500 : 700,
    );
});

scenario('New Run shows its values soon', async () => {
  told('RAGEN: New Run', await byCommand('RAGEN: New Run', '.field[data-key="model_path"] vscode-text-field'), 1000);
});

scenario('New Run reports an invalid value soon', async () => {
  const form = await editor.webview('.estimate-row');
  const field = form.locator('.field[data-key="actor_rollout_ref.actor.optim.lr"]');
  const problem = '.field[data-key="actor_rollout_ref.actor.optim.lr"] .problem:not([hidden])';
  told('an invalid value', await timed(problem, () => field.locator('input').fill('-1')), 500);
});

scenario('a return to a tab shows its page soon', async () => {
  const tab = editor.page.getByRole('tab', { name: /Dashboard/ });
  told('back to the Dashboard', await timed('.chart canvas', () => tab.click()), 200);
});

scenario('a reload of the window returns to the dashboard', async () => {
  told('reload to the Dashboard', await timed('.chart canvas', () => editor.reload()), 4000);
});
