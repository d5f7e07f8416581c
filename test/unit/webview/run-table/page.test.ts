// @vitest-environment happy-dom
// The run table: rows, columns, filter, order, groups, selection, editing, views and CSV, and which values it requests.
import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  runTableAction,
  runTableCells,
  runTableChanged,
  runTableColour,
  runTableExport,
  runTableReady,
  runTableSaveView,
  runTableTags,
  runTableWriteNotes,
} from '../../../../extension/protocol/run-table-page';
import { hue, paletteOf } from '../../../../extension/common/palette';
import { startRunTable } from '../../../../webview/run-table/page';
import { runTableHost, tableRuns } from '../../../e2e/preview/run-table-host';
import type { MemoryHost } from '../../../e2e/preview/memory-host';
import { freshPage, pageHost, press, settle, type PageHost } from '../page-host';

const metrics = readFileSync('docs/METRICS.md', 'utf8');
let root: HTMLElement;
let host: PageHost;
let requests: { method: string; params: unknown }[];

async function open(count: number, kept?: unknown): Promise<void> {
  const memory = runTableHost(count, metrics);
  requests = [];
  const recording: MemoryHost = {
    answer(method, params) {
      requests.push({ method, params });
      return memory.answer(method, params);
    },
  };
  root = freshPage();
  host = pageHost(recording, kept);
  startRunTable(host, root);
  for (let turn = 0; turn < 20; turn++) await settle();
}

const rows = () => [...root.querySelectorAll<HTMLElement>('tbody tr:not(.blank)')];
const heads = () => [...root.querySelectorAll('thead th')].map(head => head.querySelector('.head-name')?.textContent);
const names = () => [...root.querySelectorAll('tbody tr:not(.group) th.name .link')].map(cell => cell.textContent);
const column = (title: string) => rows().map(row => row.children[heads().indexOf(title)].textContent.trim());
const head = (title: string) => root.querySelectorAll<HTMLElement>('thead th')[heads().indexOf(title)];
const click = async (element: Element | null | undefined, more: MouseEventInit = {}) => {
  element!.dispatchEvent(new MouseEvent('click', { bubbles: true, ...more }));
  await settle();
};
const type = async (text: string) => {
  const field = root.querySelector<HTMLElement & { value: string }>('.filter')!;
  field.value = text;
  field.dispatchEvent(new Event('input'));
  for (let turn = 0; turn < 6; turn++) await settle();
};
const menu = async (title: string, label: string) => {
  await click(head(title).querySelector('.head-menu'));
  await click([...document.querySelectorAll('.menu-item')].find(item => item.textContent.includes(label)));
};
const button = (label: string) =>
  [...root.querySelectorAll('button, vscode-button')].find(each => each.textContent.trim().startsWith(label));
const asked = (method: string) => requests.filter(request => request.method === method);

describe('rows', () => {
  beforeEach(() => open(30));

  it('have the colour of their run, which a menu changes', async () => {
    const swatch = rows()[2].querySelector<HTMLElement>('.swatch-button')!;
    await click(swatch);
    await click([...document.querySelectorAll('.menu-item')].find(item => item.textContent.includes('Green')));
    const { params } = asked(runTableColour.method)[0] as { params: { folder: string; colour: string } };
    expect(params).toEqual({ folder: tableRuns(30).filter(run => !run.archived)[2].folder, colour: 'green' });
    const [run] = tableRuns(30).filter(({ folder }) => folder === params.folder);
    host.send(runTableChanged, { runs: [{ ...run, colour: 'green' }], gone: [] });
    await settle();
    const shown = rows()[2].querySelector<HTMLElement>('.run-swatch')!.getAttribute('style');
    expect(shown).toContain(paletteOf('dark')[hue.green]);
  });

  it('are the runs that are not archived, newest first, with their state and best validation success', () => {
    const open = tableRuns(30).filter(run => !run.archived);
    expect(names()).toEqual(open.map(({ name }) => name));
    expect(heads()).toEqual([undefined, 'Run', 'State', 'Progress', 'success', 'Return', 'Tags', 'Notes', 'Started']);
    expect(column('success').slice(0, 5)).toEqual(['11.0 %', '48.0 %', '85.0 %', '22.0 %', '–']);
    expect(column('Progress')[0]).toBe('57 / 200');
    expect(root.querySelector('.facts-row')!.textContent).toContain(`${open.length} runs`);
  });

  it('are sorted by a click on a head, missing values last, and by a second column with Shift', async () => {
    await click(head('success').querySelector('.head-sort'));
    const values = column('success');
    const numbers = values.filter(text => text !== '–').map(Number.parseFloat);
    expect(numbers).toEqual([...numbers].sort((a, b) => b - a));
    expect(values.at(-1)).toBe('–');
    expect(head('success').getAttribute('aria-sort')).toBe('descending');
    await click(head('success').querySelector('.head-sort'));
    expect(column('success').slice(0, numbers.length).map(Number.parseFloat)).toEqual(numbers.toReversed());
    expect(column('success').at(-1)).toBe('–');
    await click(head('Run').querySelector('.head-sort'), { shiftKey: true });
    expect(host.getState()).toMatchObject({
      view: { layout: { sort: ['best(val-env/CoordFrozenLake/success)', '-name'] } },
    });
  });

  it('are filtered by fields, keys and metrics that are not columns', async () => {
    await type('tag:paper lr>=0.001 -state:failed');
    const expected = tableRuns(30).filter(
      (run, i) =>
        !run.archived && run.tags?.includes('paper') && [2, 3].includes(i % 4) && run.status.state !== 'failed',
    );
    expect(names()).toEqual(expected.map(({ name }) => name));
    await type('nonsense:1');
    expect(root.querySelector('.problem')!.textContent).toContain('“nonsense” is not the name of exactly one column');
    await type('no such run');
    expect(root.querySelector('.notice')!.textContent).toContain('None of');
    await click(button('Clear filter'));
    expect(names().length).toBeGreaterThan(20);
  });

  it('are grouped by a configuration key, with means, and folded', async () => {
    await click(button('Columns'));
    await click(button('actor_rollout_ref.actor.optim.lr'));
    await menu('lr', 'Group by this column');
    const groups = [...root.querySelectorAll<HTMLElement>('tr.group')];
    expect(groups.map(group => group.querySelector('th')!.textContent.replace(/\s+/g, ' ').trim())).toEqual([
      '▾0.0001 8 runs',
      '▾0.0003 7 runs',
      '▾0.001 6 runs',
      '▾0.003 6 runs',
    ]);
    expect(groups[0].children[heads().indexOf('success') - 1].textContent).toMatch(/^\d+\.\d %$/);
    const all = rows().length;
    await click(groups[0].querySelector('button'));
    expect(rows()).toHaveLength(all - 8);
    await click(button('ungroup'));
    expect(rows()).toHaveLength(all - 4);
  });

  it('open a dashboard; selected runs get bulk actions, also over a range', async () => {
    await click(root.querySelector('tbody .name .link'));
    const boxes = () => [...root.querySelectorAll<HTMLInputElement>('tbody input[type=checkbox]')];
    const tick = async (at: number, shiftKey = false) => {
      boxes()[at].dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, shiftKey }));
      await settle();
    };
    await tick(1);
    await tick(4, true);
    expect(root.querySelector('.facts-row')!.textContent).toContain('4 selected');
    await click(button('Compare'));
    await click(button('Delete'));
    const folders = ['/runs/1', '/runs/2', '/runs/3', '/runs/4'];
    expect(host.sent.filter(({ method }) => method === runTableAction.method).map(({ params }) => params)).toEqual([
      { action: 'dashboard', folders: ['/runs/0'] },
      { action: 'compare', folders },
      { action: 'delete', folders },
    ]);
    expect(button('Stop')!.hasAttribute('disabled')).toBe(true);
    press('Escape');
    await settle();
    expect(root.querySelector('.facts-row')!.textContent).not.toContain('selected');
  });

  it('have tags and notes that are edited in place', async () => {
    await click(root.querySelector('[aria-label*="edit tags"]'));
    const tags = root.querySelector<HTMLInputElement>('input.cell-editor')!;
    tags.value = 'paper, #best, paper';
    host.send(runTableChanged, { runs: tableRuns(30).slice(0, 1), gone: [] }); // an update must not replace the text
    await settle();
    expect(tags.value).toBe('paper, #best, paper');
    tags.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
    await settle();
    expect(asked(runTableTags.method).map(({ params }) => params)).toEqual([
      { folder: '/runs/0', tags: ['paper', 'best'] },
    ]);
    await click(root.querySelector('[aria-label*="edit notes"]'));
    const notes = root.querySelector<HTMLTextAreaElement>('textarea.cell-editor')!;
    const before = notes.value;
    expect(before).toContain('# lake');
    notes.value = `${before}more`;
    host.refuse(runTableWriteNotes.method, 'notes.md was changed in the meantime');
    notes.dispatchEvent(new Event('blur'));
    await settle();
    expect(root.querySelector('.problem')!.textContent).toContain('changed in the meantime');
    expect(root.querySelector('.cell-editor')).toBeNull();
  });

  it('are exported as CSV with complete precision', async () => {
    await type('seed.train=10000 lr:0.0001');
    await click(root.querySelector('[aria-label="Export as CSV"]'));
    const { text } = asked(runTableExport.method)[0].params as { text: string };
    const [first, second, end] = text.split('\n');
    expect(first).toBe('name,id,state,progress,best(val-env/CoordFrozenLake/success),reward,tags,notes,created');
    expect(second).toMatch(
      /^lake lr 0\.0001 seed 1,20260203-0030-lake,running,57,0\.11,-2,,,2026-02-03T00:00:00\.000Z$/,
    );
    expect(end).toBe('');
  });

  it('show what a saved view holds', async () => {
    await type('tag:paper');
    await menu('Notes', 'Remove column');
    await click(button('Views'));
    await click([...document.querySelectorAll('.menu-item')].find(item => item.textContent.includes('Save view as')));
    expect(asked(runTableSaveView.method)).toHaveLength(1);
    expect(button('View')!.textContent.trim()).toBe('View: my view');
    const filtered = names();
    await type('');
    expect(button('View')!.textContent.trim()).toBe('View: my view, changed');
    await click(button('View'));
    await click([...document.querySelectorAll('.menu-item')].find(item => item.textContent.trim().endsWith('my view')));
    expect(names()).toEqual(filtered);
    expect(heads()).not.toContain('Notes');
  });
});

describe('with 500 runs', () => {
  beforeEach(() => open(500));

  it('draws only the rows near the screen, and requests each value once', () => {
    expect(rows().length).toBeLessThan(80);
    const { folders, repeats } = requested();
    expect(folders.size).toBe(500);
    expect(repeats).toBe(0);
  });

  it('requests only the values of the runs that changed', async () => {
    requests.length = 0;
    host.send(runTableChanged, { runs: tableRuns(500).slice(3, 5), gone: ['/runs/9'] });
    for (let turn = 0; turn < 4; turn++) await settle();
    expect(asked(runTableCells.method).map(({ params }) => (params as { folders: string[] }).folders)).toEqual([
      ['/runs/3', '/runs/4'],
    ]);
    expect(asked(runTableReady.method)).toEqual([]);
    expect(root.querySelector('.facts-row')!.textContent).toContain('454 runs');
  });

  it('draws the rows to which it is scrolled', async () => {
    const area = root.querySelector<HTMLElement>('.table-scroll')!;
    area.scrollTop = 28 * 300;
    area.dispatchEvent(new Event('scroll'));
    await settle();
    expect(names()).toContain(tableRuns(500).filter(run => !run.archived)[300].name);
    expect(rows().length).toBeLessThan(80);
  });

  /** Folders of all requests for values, and how many values were requested again. */
  function requested(): { folders: Set<string>; repeats: number } {
    const folders = new Set<string>();
    const seen = new Set<string>();
    let repeats = 0;
    for (const { params } of asked(runTableCells.method)) {
      const { folders: some, columns } = params as { folders: string[]; columns: string[] };
      expect(some.length).toBeLessThanOrEqual(40);
      for (const folder of some) {
        folders.add(folder);
        for (const id of columns) {
          if (seen.has(`${folder} ${id}`)) repeats++;
          seen.add(`${folder} ${id}`);
        }
      }
    }
    return { folders, repeats };
  }
});

it('shows why the runs cannot be read, and reads them again', async () => {
  await open(3);
  host.refuse(runTableCells.method, 'the disk is gone');
  host.send(runTableChanged, { runs: tableRuns(3), gone: [] });
  await settle();
  expect(root.querySelector('[role=alert]')!.textContent).toContain('the disk is gone');
  host.accept(runTableCells.method);
  await click(button('Try again'));
  expect(names()).toHaveLength(3);
});
