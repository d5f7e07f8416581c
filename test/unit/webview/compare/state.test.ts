// The changes of the comparison's state, without a page: which columns are wanted, and what a search shows.
import { describe, expect, it } from 'vitest';
import type { CompareSnapshot } from '../../../../extension/protocol/compare-page';
import { paletteOf } from '../../../../extension/common/palette';
import { comparedOf } from '../../../../webview/compare/compared-metrics';
import { reduce, type CompareEvent } from '../../../../webview/compare/reducer';
import {
  firstSettings,
  foundMetrics,
  initialState,
  isOpen,
  tableMetric,
  wantedKeys,
  type CompareState,
} from '../../../../webview/compare/state';
import type { Theme } from '../../../../webview/shared/theme';
import { partial } from '../../../support/partial';

const theme = { kind: 'dark', palette: paletteOf('dark') } as Theme;
const success = 'train/Bandit/success';
const entropy = 'actor/entropy';

function snapshotOf(...ids: string[]): CompareSnapshot {
  const runs = ids.map(id => ({ run: { id }, seed: '1', keys: [entropy, success], marks: [] }));
  const groups = [{ label: 'all', members: [...ids.keys()], values: [] }];
  return partial<CompareSnapshot>({ runs, groups, keys: [], meanings: {} });
}
const snapshot = snapshotOf('a', 'b');
const connected = (of = snapshot): CompareEvent => ({ type: 'connected', snapshot: of });
const seen = (key: string, isOnScreen = true): CompareEvent => ({ type: 'on-screen', key, isOnScreen });
const answered = (of: CompareSnapshot, ...keys: string[]): CompareEvent => ({
  type: 'answered',
  keys,
  of,
  runs: of.runs.map(() => ({ steps: Float64Array.of(1), columns: { [success]: Float64Array.of(0.5) } })),
});
const after = (...events: CompareEvent[]): CompareState => events.reduce(reduce, initialState(firstSettings, theme));

describe('wanted columns', () => {
  it('are those of the table and of the charts on screen, requested once', () => {
    expect(wantedKeys(after())).toEqual([]);
    const shown = after(connected(), seen(entropy));
    expect(wantedKeys(shown)).toEqual([success, entropy]);
    expect(wantedKeys(after(connected(), seen(entropy), seen(entropy, false)))).toEqual([success]);
    const asked = reduce(shown, { type: 'asked', keys: [success, entropy] });
    expect([wantedKeys(asked), asked.asking]).toEqual([[], true]);
    const refused = reduce(asked, { type: 'refused' });
    expect([wantedKeys(refused), refused.asking]).toEqual([[], false]);
  });

  it('are wanted again after the runs have grown, while the earlier ones stay in view', () => {
    const asked = after(connected(), { type: 'asked', keys: [success] }, answered(snapshot, success));
    const grown = reduce(asked, connected(snapshotOf('a', 'b')));
    expect(wantedKeys(grown)).toEqual([success]);
    expect(grown.columns.get(success)!.map(({ values }) => values[0])).toEqual([0.5, 0.5]);
  });

  it('of other runs are dropped, also when they arrive late', () => {
    const before = after(connected(), answered(snapshot, success));
    const other = reduce(before, connected(snapshotOf('a', 'c')));
    expect(other.columns.size).toBe(0);
    expect(reduce(other, answered(snapshot, success)).columns.size).toBe(0);
  });

  it('have no values where a run lacks the key', () => {
    const { columns } = after(connected(), answered(snapshot, entropy));
    expect(columns.get(entropy)!.map(({ values }) => [...values])).toEqual([[Number.NaN], [Number.NaN]]);
  });
});

it('names and formats the computed lines of a plug-in by its plan, and leaves listed metrics as they are', () => {
  const keys = [entropy, 'plugin_charts/turns/cut_off', 'plugin_charts/turns/done'];
  const own = [
    { name: 'turns', title: 'How turns end', unit: 'share' as const, keys: ['plugin_charts/turns/*'] },
    { name: 'signal', title: 'Signal', unit: 'share' as const, keys: [entropy] },
  ];
  const { metrics } = comparedOf({ ...snapshot, own, runs: [{ ...snapshot.runs[0], keys }] });
  expect(metrics.map(({ title, unit }) => [title, unit])).toEqual([
    ['Entropy', 'number'],
    ['How turns end · cut off', 'share'],
    ['How turns end · done', 'share'],
  ]);
});

describe('a search', () => {
  const found = (state: CompareState) => foundMetrics(state).map(({ key }) => key);

  it('shows the metrics whose key or title contains the text, in open sections', () => {
    const state = after(connected(), { type: 'searched', text: ' ENTR ' });
    expect(found(state)).toEqual([entropy]);
    expect(found(reduce(state, { type: 'searched', text: '' }))).toEqual([success, entropy]);
    expect([isOpen(after(connected()), 'system'), isOpen(state, 'system')]).toEqual([false, true]);
  });

  it('leaves the sections that were open before it as they are', () => {
    const closed = after({ type: 'unfolded', section: 'task', isOpen: false });
    expect(closed.settings.open).toEqual(['sweep', 'policy', 'collapse']);
    const searching = reduce(closed, { type: 'searched', text: 'x' });
    const folded = reduce(searching, { type: 'unfolded', section: 'policy', isOpen: false });
    expect([isOpen(folded, 'task'), isOpen(folded, 'policy')]).toEqual([true, false]);
    expect(folded.settings).toBe(closed.settings);
  });
});

it('the table shows success until another metric is chosen', () => {
  const state = after(connected());
  expect(tableMetric(state)!.key).toBe(success);
  expect(tableMetric(reduce(state, { type: 'metric-chosen', key: entropy }))!.key).toBe(entropy);
});

it('an error takes the place of the runs until they are read again', () => {
  const failed = after(connected(), { type: 'failed', message: 'no disk' });
  expect([failed.connection, failed.compared]).toEqual([{ failed: 'no disk' }, null]);
  expect(reduce(failed, { type: 'connecting' }).connection).toBe('connecting');
});

it('an event that changes nothing returns the same state', () => {
  const state = after(connected(), seen(entropy), { type: 'hovered', x: 4 });
  const same: CompareEvent[] = [
    { type: 'connecting' },
    seen(entropy),
    seen(success, false),
    { type: 'hovered', x: 4 },
    { type: 'searched', text: '' },
    { type: 'unfolded', section: 'task', isOpen: true },
  ];
  for (const event of same) expect(reduce(state, event), event.type).toBe(state);
});
