// The changes of the Episodes page's state, without a page: what is listed, which episode is open, and which answers
// are dropped.
import { describe, expect, it } from 'vitest';
import { paletteOf } from '../../../../extension/common/palette';
import type { EpisodeRow } from '../../../../extension/run-data/episode-table';
import type { Episode } from '../../../../extension/run-data/episode';
import { naturalOrder } from '../../../../webview/episodes/list/listing';
import { reduce, type EpisodesEvent } from '../../../../webview/episodes/reducer';
import { firstSettings, type EpisodeData, type EpisodesSettings } from '../../../../webview/episodes/episodes-settings';
import {
  initialState,
  listFacts,
  listProblems,
  matchesNothing,
  type EpisodesState,
} from '../../../../webview/episodes/state';
import { indexOfStep, stepAtTop } from '../../../../webview/episodes/list/step-navigation';
import type { Theme } from '../../../../webview/shared/theme';
import { runAt } from '../../../e2e/preview/data';
import { tableOf } from '../rows';

const theme = { kind: 'dark', palette: paletteOf('dark') } as Theme;
const row = (step: number, group_id: number, member: number, change: Partial<EpisodeRow> = {}) => ({
  ...{ step, mode: 'train' as const, group_id, member, tag: 'A', success: member === 0, score: member },
  ...{ turns: 1, tokens: 10 * step + member, kept: true, seed: group_id, ...change },
});
/** Three steps of two groups of two; the prompts recur. */
const rows = [1, 2, 3].flatMap(step => [0, 1].flatMap(group => [row(step, group, 0), row(step, group, 1)]));
const dataOf = (given: Parameters<typeof tableOf>[0]): EpisodeData => {
  const table = tableOf(given);
  return { table, order: naturalOrder(table), modes: ['train'] };
};
const data = dataOf(rows);
const grew = (of: EpisodeData): EpisodesEvent => ({ type: 'grew', run: runAt(3, 200), read: 1, data: of });
const after = (settings: Partial<EpisodesSettings>, ...events: EpisodesEvent[]): EpisodesState =>
  events.reduce(reduce, initialState({ ...firstSettings, ...settings }, theme));
const open = (step: number, group: number, member: number): EpisodesEvent => ({
  type: 'open-id',
  id: `train-00000${step}-g00${group}-m0${member}`,
});
const openId = ({ subject }: EpisodesState): string | undefined => subject?.row.id;
const listedRows = ({ matches }: EpisodesState): number[] => [...(matches?.listing.rows ?? [])];

describe('the list', () => {
  it('has the episodes that match the filter, newest step first', () => {
    expect(listedRows(after({}, grew(data)))).toEqual([8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]);
    const state = after({}, grew(data), { type: 'filter', line: 'group:1 member:0 sucess:1' });
    expect([listedRows(state), listFacts(state)]).toEqual([[10, 6, 2], '3 of 12 episodes · 100 % success']);
    expect(listProblems(state)).toContain('“sucess” is not a field');
    const none = reduce(state, { type: 'filter', line: 'group:9' });
    expect([matchesNothing(none), listFacts(none)]).toEqual([true, '0 of 12 episodes']);
  });

  it('is sorted by a column, and then has no step at its top', () => {
    const state = after({}, grew(data), { type: 'sort', sort: { by: 'tokens', down: true } });
    expect(listedRows(state).slice(0, 3)).toEqual([9, 11, 8]);
    expect([stepAtTop(state), indexOfStep(state, -1)]).toEqual([null, null]);
  });

  it('is the same while no rows are added', () => {
    const state = after({}, grew(data));
    expect(reduce(state, grew(data)).matches).toBe(state.matches);
    expect(reduce(state, grew(dataOf([...rows, row(4, 0, 0)]))).matches).not.toBe(state.matches);
    expect(reduce(state, { type: 'scrolled', top: 0 })).toBe(state);
  });

  it('goes from step to step', () => {
    const state = after({}, grew(data));
    expect(stepAtTop(state)).toMatchObject({ step: 3 });
    const back = indexOfStep(state, -1)!;
    const second = reduce(state, { type: 'scrolled', top: back });
    expect([stepAtTop(second)?.step, indexOfStep(second, 1)]).toEqual([2, 0]);
  });

  it('takes what a text search finds, unless the query has changed since', () => {
    const state = after({}, grew(data), { type: 'filter', line: 'text:stuck' });
    const query = state.query!;
    expect([query.texts, query.rows.length]).toEqual([[{ value: 'stuck', not: false }], 12]);
    const found = Uint32Array.of(9);
    const some = reduce(state, { type: 'matched', query, rows: found, searched: 0.25 });
    expect([listedRows(some), listFacts(some)]).toEqual([[9], '1 of 12 episodes · 0 % success · searched 25.0 %']);
    const failed = reduce(some, { type: 'search-failed', query, message: 'gone' });
    expect([listFacts(failed), listProblems(failed)]).toEqual(['', 'gone']);
    const other = reduce(some, { type: 'filter', line: 'text:wall' });
    expect(reduce(other, { type: 'matched', query, rows: found, searched: null })).toBe(other);
  });
});

describe('the open episode', () => {
  const episode = (id: string) => ({ id, tag: 'A', seed: 0 }) as Episode;

  it('is the first one, which is not remembered, or the remembered one', () => {
    const first = after({}, grew(data));
    expect([openId(first), first.settings.open, first.front]).toEqual(['train-000003-g000-m00', null, 'list']);
    const remembered = after({ open: 'train-000002-g001-m01' }, grew(data));
    expect([openId(remembered), remembered.front]).toEqual(['train-000002-g001-m01', 'reader']);
    expect(after({ open: 'train-000009-g001-m01' }, grew(data)).subject).toBeNull();
  });

  it('changes to another member of its group, and stays at the last', () => {
    const state = after({}, grew(data), open(2, 0, 0), { type: 'member', by: 1 });
    expect([openId(state), state.settings.open]).toEqual(['train-000002-g000-m01', 'train-000002-g000-m01']);
    expect(reduce(state, { type: 'member', by: 1 })).toBe(state);
  });

  it('is read with its group, or with the prompt’s first or previous occurrence', () => {
    const group = after({ reading: 'group' }, grew(data), open(3, 1, 1));
    expect(group.subject!.others.map(({ member }) => member)).toEqual([0, 1]);
    const training = reduce(group, { type: 'reading', reading: 'training' });
    const beside = ({ subject }: EpisodesState): (number | string)[] =>
      subject!.others.flatMap(({ step, member }) => [step, member]);
    expect([beside(training), training.subject!.history!.at]).toEqual([[1, 1], 2]);
    expect(beside(reduce(training, { type: 'against', against: 'before' }))).toEqual([2, 1]);
    const earlier = reduce(training, { type: 'next-occurrence', by: -1 });
    expect(openId(earlier)).toBe('train-000002-g001-m01');
    expect(beside(reduce(earlier, { type: 'occurrence', at: 0 }))).toEqual([]);
    expect(reduce(earlier, { type: 'occurrence', at: 3 })).toBe(earlier);
  });

  it('is shown when it has been read, unless another one has been chosen since', () => {
    const state = after({}, grew(data));
    const subject = state.subject!;
    const read: EpisodesEvent = { type: 'read', subject, episode: episode(subject.row.id), others: [] };
    const shown = reduce(state, read);
    expect(shown.shown).toMatchObject({ kind: 'episode', subject });
    const next = reduce(shown, open(1, 0, 0));
    expect([reduce(next, read), next.shown]).toEqual([next, shown.shown]);
  });

  it('that cannot be read is asked for again on a retry', () => {
    const state = after({}, grew(data));
    const subject = state.subject!;
    const failed = reduce(state, { type: 'unreadable', subject, message: 'cut' });
    expect(failed.shown).toMatchObject({ kind: 'failed', text: 'cut', canRetry: true });
    const again = reduce(failed, { type: 'retry' });
    expect(again.subject).not.toBe(subject);
    expect(again.subject).toEqual(subject);
    const gone = reduce(again, { type: 'read', subject: again.subject!, episode: null, others: [] });
    expect(gone.shown).toMatchObject({ kind: 'failed', canRetry: false });
  });

  it('stays open when rows become void', () => {
    const state = after({ reading: 'group' }, grew(data), open(3, 0, 1), grew(dataOf([row(1, 0, 0)])));
    const again = reduce(state, { type: 'retry' });
    expect([openId(again), again.subject!.others.length]).toEqual(['train-000003-g000-m01', 1]);
    expect(reduce(again, { type: 'member', by: 1 })).toBe(again);
  });
});
