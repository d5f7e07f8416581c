import { describe, expect, it } from 'vitest';
import type { EpisodeRow, EpisodeTable } from '../../../extension/run-data/episode-table';
import type { EpisodeTurn } from '../../../extension/run-data/episode';
import { actionOutcomes } from '../../../extension/run-data/action-outcomes';
import { changedCells, describeBoard, gameOf, readBoard } from '../../../extension/common/board';
import { markedLines, markChanges } from '../../../webview/episodes/reader/text-diff';
import { ending } from '../../../webview/episodes/reader/episode-view';
import { groupRows, Listing, naturalOrder, promptRows, sortRows } from '../../../webview/episodes/list/listing';
import { counterpart, occurrences } from '../../../webview/episodes/reader/over-training';
import { partingTurn } from '../../../webview/episodes/reader/compare-grid';
import { sampledTokens, tokenSummary } from '../../../webview/episodes/reader/token-log-probs';
import { tableOf } from './rows';

const turn = (change: Partial<EpisodeTurn>): EpisodeTurn => ({
  turn: 1,
  state: '',
  actions_left: 10,
  raw: '',
  thought: '',
  answer: '',
  parsed: [],
  executed: [],
  reward: 0,
  penalty: 0,
  info: {},
  finish: 'stop',
  span: [0, 0],
  ...change,
});

describe('outcomes of actions', () => {
  const outcomes = (change: Partial<EpisodeTurn>, ends = false) =>
    actionOutcomes(turn(change), ends).map(({ name, reason }) => `${name}: ${reason ?? 'done'}`);
  const unknown = 'not an action of this environment';

  it.each([
    [
      'all ran, whatever their case',
      { parsed: ['up', 'Left'], executed: ['Up', 'Left'] },
      false,
      ['up: done', 'Left: done'],
    ],
    [
      'an unknown one was dropped',
      { parsed: ['Jump', 'Up'], executed: ['Up'] },
      false,
      [`Jump: ${unknown}`, 'Up: done'],
    ],
    [
      'an unknown one at the end',
      { parsed: ['Up', 'Jump'], executed: ['Up'] },
      false,
      ['Up: done', `Jump: ${unknown}`],
    ],
    ['none was known', { parsed: ['Jump'], executed: [] }, true, [`Jump: ${unknown}`]],
    [
      'the episode ended between them',
      { parsed: ['Up', 'Up'], executed: ['Up'] },
      true,
      ['Up: done', 'Up: the episode had ended'],
    ],
    [
      'the actions were used up',
      { parsed: ['Up', 'Up'], executed: ['Up'], actions_left: 1 },
      true,
      ['Up: done', 'Up: no actions left'],
    ],
    [
      'the answer was too long',
      { parsed: ['Up', 'Left'], executed: ['Up', 'Left'], raw: '<think>a</think><answer>Up || Left || Up</answer>' },
      false,
      ['Up: done', 'Left: done', 'Up: over max_actions_per_turn'],
    ],
    [
      'the answer was too long, in <ans>',
      { parsed: ['Up', 'Left'], executed: ['Up', 'Left'], raw: '<think>a</think><ans>Up || Left || Up</ans>' },
      false,
      ['Up: done', 'Left: done', 'Up: over max_actions_per_turn'],
    ],
    [
      'another separator says nothing of what was cut',
      { parsed: ['Up'], executed: ['Up'], raw: '<answer>Up; Left</answer>' },
      false,
      ['Up: done'],
    ],
    ['nothing was written', {}, false, []],
  ])('are labelled: %s', (_, change, ends, expected) => expect(outcomes(change, ends)).toEqual(expected));
});

describe('boards', () => {
  const played = (name: string, ...states: string[]) => gameOf({ environment: { name }, tag: 'T', states });
  const sokoban = '####\n#PX#\n#_O#\n####';

  it("are Sokoban’s or FrozenLake’s by name, or by the game's full symbol set", () => {
    expect(played('CoordSokoban', 'PX')).toBe('sokoban');
    expect(played('frozen_lake', 'X_\n_O')).toBe('frozen_lake');
    expect(played('mine', sokoban)).toBe('sokoban');
    expect(played('mine', '####\n#_P#\n####', '####\n#√P#\n####')).toBe('sokoban');
    expect(played('mine', 'P_\nOG')).toBe('frozen_lake');
    expect(played('mine', 'X_\n_O')).toBeNull();
    expect(played('snowflake', 'X_\n_O')).toBeNull();
  });

  it('of another game with walls, players and a goal stay text, also with the player on the goal', () => {
    const [before, after] = ['####\n#PG#\n####', '####\n#_P#\n####'];
    expect([played('maze', before, after), played('maze', after), played('my sokoban', before, after)]).toEqual([
      null,
      null,
      null,
    ]);
  });

  it('are parsed by the game’s symbols', () => {
    expect(readBoard(sokoban, 'sokoban')).toMatchObject({ game: 'sokoban', before: '', after: '' });
    expect(readBoard(sokoban, 'sokoban')!.cells[1]).toEqual(['wall', 'player', 'box', 'wall']);
    expect(readBoard('P_\nOG', 'frozen_lake')!.cells).toEqual([
      ['player', 'empty'],
      ['hole', 'goal'],
    ]);
    expect(readBoard('X_\n_O', 'frozen_lake')!.cells[0][0]).toBe('player_in_hole');
    expect(readBoard('X_\n_O', 'sokoban')!.cells[0][0]).toBe('box');
    expect(readBoard('X_\n_O', null)).toBeNull();
  });

  it('are found among other text', () => {
    const board = readBoard('Coordinates: \nPlayer: (1, 1)\nGrid Map: \n####\n#P√#\n####', 'sokoban')!;
    expect([board.before, board.after, board.cells.length]).toEqual([
      'Coordinates: \nPlayer: (1, 1)\nGrid Map:',
      '',
      3,
    ]);
  });

  it('are parsed with spaces between the cells', () => {
    expect(readBoard(' # \t # \t #\n # \t P \t #\n # \t # \t #', 'sokoban')!.cells[1]).toEqual([
      'wall',
      'player',
      'wall',
    ]);
  });

  it.each(['', 'Turn 1', 'OX', 'PO\nP', 'A_B\n#P#', 'SOS\nSOS', 'GO\nGO\nx', '1 2\n3 4'])('%j is not a board', text => {
    expect(readBoard(text, played('mine', text))).toBeNull();
  });

  it('show what changed, and nothing for another size', () => {
    const [a, b] = ['####\n#PX#\n#_O#\n####', '####\n#_X#\n#PO#\n####'].map(text => readBoard(text, 'sokoban')!);
    expect([...changedCells(b, a)]).toEqual(['1,1', '2,1']);
    expect(changedCells(b, null).size).toBe(0);
    expect(changedCells(b, readBoard('P_\nOG', 'frozen_lake')).size).toBe(0);
  });

  it('have a text description', () => {
    expect(describeBoard(readBoard('####\n#PX#\n#√S#\n####', 'sokoban')!)).toBe(
      'Sokoban board, 4 × 4, (row, column) from 0; player (1, 1) (2, 2); boxes (1, 2); boxes on target (2, 1); targets (2, 2)',
    );
  });
});

describe('changed lines', () => {
  const changed = (state: string, previous: string | null) =>
    markedLines(state, previous)
      .filter(line => line.changed)
      .map(line => line.text);

  it('are those missing in the state before', () => {
    expect(changed('a\nb\nc', 'a\nc')).toEqual(['b']);
    expect(changed('a\nc', 'a\nb\nc')).toEqual([]);
    expect(changed('a\nB\nc', 'a\nb\nc')).toEqual(['B']);
    expect(changed('x', null)).toEqual([]);
    expect(markedLines('a\n\nb', 'b').map(line => line.text)).toEqual(['a', '', 'b']);
  });

  it('are found in long states too', () => {
    const long = Array.from({ length: 5000 }, (_, i) => `line ${i}`);
    expect(changed([...long.slice(0, 4999), 'new'].join('\n'), long.join('\n'))).toEqual(['new']);
  });
});

describe('tokens', () => {
  const episode = {
    tokens: {
      ids: [1, 2, 3, 4, 5],
      mask: [0, 1, 1, 0, 1] as (0 | 1)[],
      logprobs: [null, -1, null, null, -3],
      advantages: [0, 0.5, 0.5, 0, 0.5],
    },
  };

  it('are the sampled ones of the span', () => {
    expect(sampledTokens(episode, turn({ span: [1, 4] }))).toEqual([
      { id: 2, logprob: -1, advantage: 0.5 },
      { id: 3, logprob: null, advantage: 0.5 },
    ]);
    expect(sampledTokens(episode, turn({ span: [3, 99] }))).toEqual([{ id: 5, logprob: -3, advantage: 0.5 }]);
  });

  it('have summary statistics', () => {
    expect(tokenSummary(sampledTokens(episode, turn({ span: [0, 5] })))).toBe('3 tokens · mean log-prob −2');
    expect(tokenSummary([])).toBe('0 tokens');
    expect(tokenSummary([{ id: 1, logprob: null, advantage: null }])).toBe('1 token');
  });
});

describe('the list', () => {
  type Row = Omit<EpisodeRow, 'id'> & { seed?: number; first?: number };
  const row = (step: number, group_id: number, member: number, change: Partial<Row> = {}): Row => ({
    step,
    mode: 'train',
    group_id,
    member,
    tag: 'A',
    success: member === 0,
    score: member,
    turns: 1,
    tokens: 1,
    kept: true,
    ...change,
  });
  const listed = (table: EpisodeTable) => {
    const order = naturalOrder(table);
    return new Listing(table, order, true, order);
  };
  const items = (rows: Row[]) => {
    const table = tableOf(rows);
    const listing = listed(table);
    return Array.from({ length: listing.length }, (_, i) => listing.at(i));
  };

  it('has groups and members in order, with the spread of scores; a single member has no heading', () => {
    const found = items([row(1, 1, 0), row(1, 0, 1), row(1, 0, 0), row(1, 0, 2)]);
    expect(found.map(item => item.key)).toEqual([
      'group train 1 0',
      'train-000001-g000-m00',
      'train-000001-g000-m01',
      'train-000001-g000-m02',
      'train-000001-g001-m00',
    ]);
    expect(found[0]).toMatchObject({ count: 3, size: 3, solved: 1, std: 1 });
    expect(found.slice(1).map(item => item.kind === 'episode' && item.unit)).toEqual([
      ...['member', 'member', 'member'],
      'group',
    ]);
  });

  it('describes all members of a group even if a filter shows some', () => {
    const table = tableOf([row(2, 0, 0), row(1, 0, 0), row(1, 0, 1), row(1, 0, 2), row(1, 1, 0), row(1, 1, 1)]);
    const order = naturalOrder(table);
    const shown = order.filter(row => [2, 4].includes(row));
    const listing = new Listing(table, shown, true, order);
    expect(listing.at(0)).toMatchObject({ kind: 'group', count: 1, size: 3, solved: 1, std: 1 });
    expect(listing.at(2)).toMatchObject({ kind: 'group', count: 1, size: 2, solved: 1 });
  });

  it('has steps, newest first, if there are several', () => {
    const found = items([row(1, 0, 0), row(2, 0, 0), row(2, 0, 0, { mode: 'val' })]);
    expect(found.filter(item => item.kind === 'step').map(item => item.key)).toEqual([
      'step train 2',
      'step val 2',
      'step train 1',
    ]);
  });

  it('finds an episode and the nearest that can be selected', () => {
    const table = tableOf([row(1, 0, 0), row(1, 1, 0), row(2, 0, 0)]);
    const listing = listed(table);
    const at = listing.find('train-000001-g001-m00');
    expect(listing.at(at)).toMatchObject({ kind: 'episode', row: { step: 1, group_id: 1 } });
    expect([listing.find('train-000009-g000-m00'), listing.find('nothing')]).toEqual([-1, -1]);
    expect([listing.selectableFrom(0, 1), listing.selectableFrom(0, -1), listing.selectableFrom(at - 1, -1)]).toEqual([
      1,
      -1,
      at - 1,
    ]);
  });

  it('sorts by any column, stable for ties, missing values last', () => {
    const table = tableOf([
      row(1, 0, 0, { tokens: 5, advantage: 2, tag: 'B' }),
      row(1, 0, 1, { tokens: 9, advantage: null }),
      row(1, 0, 2, { tokens: 5, advantage: -1, kept: null }),
    ]);
    const sorted = (by: Parameters<typeof sortRows>[2]['by'], down: boolean) => [
      ...sortRows(naturalOrder(table), table, { by, down }),
    ];
    expect(sorted('tokens', true)).toEqual([1, 0, 2]);
    expect(sorted('tokens', false)).toEqual([0, 2, 1]);
    expect(sorted('advantage', true)).toEqual([0, 2, 1]);
    expect(sorted('advantage', false)).toEqual([2, 0, 1]);
    expect(sorted('kept', false)).toEqual([0, 1, 2]);
    expect(sorted('tag', false)).toEqual([1, 2, 0]);
  });

  it('finds the members of a group', () => {
    const table = tableOf([row(1, 0, 1), row(1, 0, 0), row(1, 1, 0), row(2, 0, 0), row(1, 0, 5, { mode: 'val' })]);
    expect(groupRows(table, 0)).toEqual([1, 0]);
  });

  it('finds when a prompt was played: by tag and seed, or by its first state', () => {
    const table = tableOf([
      row(8, 0, 1, { mode: 'val', seed: 7, first: 11 }),
      row(4, 3, 0, { mode: 'val', seed: 7, first: 11 }),
      row(4, 3, 1, { mode: 'val', seed: 7, first: 11 }),
      row(6, 0, 0, { seed: 7, first: 12 }), // a training seed does not identify a validation prompt
      row(6, 1, 0, { seed: 99, first: 11 }),
      row(6, 2, 0, { seed: 7, first: 11, tag: 'B' }),
    ]);
    const all = occurrences(table, promptRows(table, 0));
    expect(all).toEqual([
      { step: 4, mode: 'val', rows: [1, 2] },
      { step: 6, mode: 'train', rows: [4] },
      { step: 8, mode: 'val', rows: [0] },
    ]);
    expect(all.map(each => counterpart(table, each, 0))).toEqual([2, 4, 0]);
  });
});

describe('side-by-side episodes', () => {
  it('diverge at the first turn with different actions', () => {
    const played = (...actions: string[][]) => ({ turns: actions.map(executed => turn({ executed })) });
    expect(partingTurn(played(['Up'], ['Left']), played(['Up'], ['Down']))).toBe(1);
    expect(partingTurn(played(['Up']), played(['Up'], ['Down']))).toBe(-1);
    expect(partingTurn(played(['Up'], ['Down']), played(['Up']))).toBe(1);
  });

  it('mark the words that the other lacks, ignoring spaces', () => {
    const parts = markChanges('go  up then left', 'go up, then left twice');
    expect(parts.filter(word => word.changed).map(word => word.text)).toEqual(['up ']);
    expect(parts.map(word => word.text).join('')).toBe('go  up then left');
    expect(markChanges('a b', null).some(word => word.changed)).toBe(false);
  });
});

it.each([
  [{ success: true, terminated: true, truncated: false }, 'The task was solved.'],
  [
    { success: false, terminated: true, truncated: true },
    'The environment ended the episode without success, or no actions were left.',
  ],
  [{ success: false, terminated: true, truncated: false }, 'The environment ended the episode.'],
  [{ success: false, terminated: false, truncated: false }, 'Reached the turn limit after 1 turn.'],
])('an end of %j is described as: %s', (how, sentence) => expect(ending({ ...how, turns: [turn({})] })).toBe(sentence));
