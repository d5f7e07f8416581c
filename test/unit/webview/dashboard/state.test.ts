// @vitest-environment happy-dom
import { describe, expect, it } from 'vitest';
import type { DashboardSnapshot } from '../../../../extension/protocol/dashboard-page';
import { noneRedundant } from '../../../../extension/run-data/redundant-columns';
import type { RunEvent } from '../../../../extension/run-data/run-events';
import { reduce, type DashboardEvent } from '../../../../webview/dashboard/reducer';
import { firstSettings } from '../../../../webview/dashboard/dashboard-settings';
import { foundGroups, groupsOf, initialState, isTable, type DashboardState } from '../../../../webview/dashboard/state';
import { areSame, latest } from '../../../../webview/shared/memoize-latest';
import { readTheme } from '../../../../webview/shared/theme';
import { runAt } from '../../../e2e/preview/data';

const keys = ['actor/entropy', 'actor/ppo_kl', 'actor/pg_loss', 'critic/score/mean'];
const series = { rows: 140, keys, redundant: noneRedundant };
const event = { time: '2026-01-01T00:00:00Z', step: 3, kind: 'alarm', message: 'low' } as RunEvent;
const snapshot: DashboardSnapshot = {
  ...{ run: runAt(140, 200), epoch: 1, steps: [[1, 140]], keys, read: 1, events: [event], meanings: {} },
  ...{ view: { schema: 3, view: { axis: 'time', zoom: { from: 1, to: 2 } } }, scored: false, ending: null },
  episodes: { train: null, val: {} },
  redundant: noneRedundant,
};
const start = initialState(firstSettings, false, readTheme());
const after = (events: DashboardEvent[], from: DashboardState = start) => events.reduce(reduce, from);
const open = after([{ type: 'connected', snapshot, series }]);

describe('the state of the dashboard', () => {
  it('takes the workspace’s settings once, if it has none of its own, without the zoom', () => {
    const fresh = after([{ type: 'connected', snapshot, series }], { ...start, isFresh: true });
    expect(fresh.settings).toEqual({ ...firstSettings, axis: 'time' });
    const changed = after([{ type: 'settings', part: { axis: 'step' } }], fresh);
    expect(after([{ type: 'connected', snapshot, series }], changed).settings.axis).toBe('step');
    expect(open.settings).toBe(firstSettings);
  });

  it('keeps the page while it connects again, and the crosshair inside the rows', () => {
    const hovered = after([{ type: 'hover', row: 120 }], open);
    expect(after([{ type: 'connecting' }], hovered)).toBe(hovered);
    const shorter = { ...series, rows: 100 };
    expect(after([{ type: 'connected', snapshot, series: shorter }], hovered).hovered).toBe(99);
    expect(after([{ type: 'failed', message: 'gone' }], hovered)).toMatchObject({
      ...{ connection: { failed: 'gone' }, run: null },
    });
  });

  it('appends events, and keeps their list if there are none', () => {
    const run = runAt(141, 200);
    const grown = { ...series, rows: 141 };
    expect(after([{ type: 'grown', run, events: [], series: grown }], open).events).toBe(open.events);
    const more = after([{ type: 'grown', run, events: [event], series: grown }], open);
    expect([more.events.length, more.series.rows, more.run]).toEqual([2, 141, run]);
  });

  it('moves the crosshair from the newest row, within the rows', () => {
    const newest = after([{ type: 'hover-by', rows: -1 }], open);
    expect(newest.hovered).toBe(139);
    expect(after([{ type: 'hover-by', rows: -10 }], newest).hovered).toBe(129);
    expect(after([{ type: 'hover-by', rows: 10 }], newest).hovered).toBe(139);
    expect(after([{ type: 'hover', row: 139 }], newest)).toBe(newest);
  });

  it('moves a chart within its group and says where it is', () => {
    const moved = after([{ type: 'move', id: 'KL', to: 1 }], open);
    expect(moved.settings.order.policy.slice(0, 2)).toEqual(['policy loss', 'KL']);
    expect(moved.announcement).toBe('KL is 2 of 2 in Policy');
    const back = after([{ type: 'move', id: 'KL', to: 'policy loss' }], moved);
    expect(back.settings.order.policy.slice(0, 2)).toEqual(['KL', 'policy loss']);
    expect(after([{ type: 'move', id: 'KL', to: 'reward' }], back)).toBe(back);
  });

  it('toggles charts, groups and tables', () => {
    const changed = after(
      [
        { type: 'chart', id: 'KL', toggles: 'log' },
        { type: 'chart', id: 'KL', toggles: 'enlarged' },
        { type: 'chart', id: 'KL', toggles: 'pinned' },
        { type: 'fold', group: 'policy' },
        { type: 'table', id: 'KL', sort: { column: 'step', down: true } },
      ],
      open,
    );
    expect(changed.settings).toMatchObject({ log: ['KL'], enlarged: ['KL'], open: ['policy'] });
    expect(changed.settings.pinned?.at(-1)).toBe('KL');
    expect(changed.tables).toEqual({ KL: { column: 'step', down: true } });
    expect(after([{ type: 'table', id: 'KL', sort: null }], changed).tables).toEqual({});
  });

  it('leaves the zoom, then the enlarged charts', () => {
    const part = { zoom: { from: 1, to: 2 }, enlarged: ['KL'] };
    const zoomed = after([{ type: 'settings', part }], open);
    const whole = after([{ type: 'escape' }], zoomed);
    expect(whole.settings).toMatchObject({ zoom: null, enlarged: ['KL'] });
    const small = after([{ type: 'escape' }], whole);
    expect(small.settings.enlarged).toEqual([]);
    expect(after([{ type: 'escape' }], small)).toBe(small);
  });

  it('expands the events to show one', () => {
    expect(after([{ type: 'open', event }], open)).toMatchObject({ opened: event, settings: { open: ['events'] } });
  });

  it('finds charts by title and key, and shows a table once there are rows', () => {
    const groups = groupsOf({ ...open, scored: true, settings: { ...open.settings, pinned: [] } });
    const found = foundGroups(groups, 'ppo_kl').flatMap(({ charts }) => charts.map(({ id }) => id));
    expect(found).toEqual(['KL']);
    expect(foundGroups(groups, 'histogram').flatMap(({ charts }) => charts)).toMatchObject([{ scores: true }]);
    expect(foundGroups(groups, '')).toBe(groups);
    const table = after([{ type: 'settings', part: { table: true } }], open);
    expect([isTable(open), isTable(table), isTable({ ...table, series: { ...series, rows: 0 } })]).toEqual([
      ...[false, true, false],
    ]);
  });
});

it('a derived value is computed again only after an argument has changed', () => {
  let computed = 0;
  const sum = latest((a: number, b: number) => ({ sum: a + b, computed: ++computed }));
  expect(sum(1, 2)).toBe(sum(1, 2));
  expect(sum(Number.NaN, 2)).toBe(sum(Number.NaN, 2));
  expect(sum(2, 2)).toEqual({ sum: 4, computed: 3 });
  expect(areSame([1], [1, 2])).toBe(false);
});
