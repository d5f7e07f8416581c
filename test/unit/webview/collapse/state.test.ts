// The changes of the Collapse page's state, without a page: the selected step, playing, growing series, and the files
// of a step.
import { describe, expect, it } from 'vitest';
import { paletteOf } from '../../../../extension/common/palette';
import type { CollapseSnapshot, PromptGroup } from '../../../../extension/protocol/collapse-page';
import type { CollapseFamily } from '../../../../extension/run-data/diagnostics';
import type { RunEvent } from '../../../../extension/run-data/run-events';
import { reduce, type CollapseEvent } from '../../../../webview/collapse/reducer';
import { RunSeries } from '../../../../extension/run-data/interpretation/run-series';
import {
  episodeOfCell,
  firstSettings,
  initialState,
  isDiagnosable,
  matrixInView,
  playInterval,
  positionOf,
  wantedFiles,
  type CollapseState,
} from '../../../../webview/collapse/state';
import type { Theme } from '../../../../webview/shared/theme';
import { runAt } from '../../../e2e/preview/data';

const theme = { kind: 'dark', palette: paletteOf('dark') } as Theme;
const family = firstSettings.family;
const diagnosis = {
  [`${family}/conditional_entropy_est`]: 1,
  [`${family}/mi_estimate`]: 0.5,
  [`${family}/mi_upper_bound`]: Math.log(16),
};
const line = (step: number) => ({ step, ...(step % 2 === 1 ? diagnosis : {}), 'actor/entropy': 1 });
const snapshot: CollapseSnapshot = {
  run: runAt(5, 200),
  steps: [],
  series: {},
  events: [],
  meanings: {},
  settings: {
    ...{ first_turn: true, multi_turn: true, turn_uniform: false, compute_freq: 2, context_window_mode: 'full' },
    ...{ gradients: true, gradients_every: 4, watch: true, trainer: null, policy: null },
    filter: {
      ...{ strategy: 'top_p', value: 0.9, type: 'largest', metric: 'reward_variance', include_zero: false },
      ...{ top_p_prob_mode: 'linear', dynamic_sampling: false, normalised: false },
    },
  },
  diagnosed: { gradients: [1, 4], groups: [] },
  checkpoints: [],
  scoredBy: null,
};

/** The state of a run with these steps, of which the odd ones were diagnosed. */
function loaded(steps: number[], settings = firstSettings): CollapseState {
  const series = new RunSeries();
  const state = initialState(series, settings, theme);
  series.append(steps.map(line));
  return reduce(state, { type: 'loaded', snapshot });
}
const after = (state: CollapseState, ...events: CollapseEvent[]): CollapseState => events.reduce(reduce, state);
const stepOf = (state: CollapseState): number => positionOf(state).step;

describe('the selected step', () => {
  const state = loaded([0, 1, 2, 3, 4, 5, 6]);

  it('is the newest one, unless another one is selected', () => {
    expect(positionOf(state)).toEqual({ step: 6, live: true, present: 2 });
    expect(positionOf(after(state, { type: 'step', step: 2 }))).toEqual({ step: 2, live: false, present: 0 });
    expect(positionOf(after(state, { type: 'step', step: 0 })).present).toBe(-1);
    expect(positionOf(loaded([2, 4], { family, step: 3 })).step).toBe(2);
    expect(positionOf(after(state, { type: 'step', step: 99 }))).toMatchObject({ step: 6, live: true });
  });

  it('moves from diagnosis to diagnosis, up to the first and the last', () => {
    const back = after(state, { type: 'moved', by: -1 });
    expect(stepOf(back)).toBe(5);
    expect(stepOf(after(back, { type: 'moved', by: -1 }, { type: 'moved', by: 1 }))).toBe(5);
    expect(after(back, { type: 'moved', by: 1 })).toBe(back);
    expect(stepOf(after(state, { type: 'first' }))).toBe(1);
    expect(stepOf(after(loaded([2, 4]), { type: 'first' }))).toBe(2);
  });

  it('follows a growing run, unless the user selected another step', () => {
    for (const [selected, shown] of [
      [null, 7],
      [3, 3],
    ] as const) {
      const before = after(loaded([0, 1, 2, 3]), { type: 'step', step: selected });
      before.series.append([line(7)]);
      const grown = after(before, { type: 'grown', ...snapshot });
      expect(stepOf(grown)).toBe(shown);
      expect(grown.diagnoses.stops).toEqual([1, 3, 7]);
    }
  });
});

describe('playing', () => {
  const state = loaded([0, 1, 2, 3, 4, 5]);
  const tick: CollapseEvent = { type: 'tick' };

  it('starts from the first diagnosis at the end, and stops at the last one', () => {
    const playing = after(state, { type: 'play' });
    expect([playing.playing, stepOf(playing)]).toEqual([true, 1]);
    const end = after(playing, tick, tick);
    expect([end.playing, stepOf(end)]).toEqual([true, 5]);
    expect(after(end, tick).playing).toBe(false);
    expect(playInterval(state)).toBe(350);
  });

  it('ends when the user takes a step by hand, not when a link selects one', () => {
    const playing = after(state, { type: 'play' });
    expect(after(playing, { type: 'step', step: 3 })).toMatchObject({ playing: true, settings: { step: 3 } });
    for (const event of [{ type: 'scrubbed', step: 3 }, { type: 'moved', by: 1 }, { type: 'play' }] as const)
      expect(after(playing, event).playing).toBe(false);
  });

  it('needs two diagnoses', () => {
    const short = loaded([0, 1]);
    expect(after(short, { type: 'play' })).toBe(short);
    expect(after(short, tick)).toBe(short);
  });
});

describe('the run', () => {
  it('has nothing to diagnose before its first step, or as an evaluation', () => {
    const state = loaded([]);
    expect(isDiagnosable(state.facts!, state.series)).toBe(false);
    expect(wantedFiles(state)).toBeNull();
    const { series } = loaded([0, 1]);
    const evaluation = { ...snapshot.run, status: { ...snapshot.run.status, episodes: { done: 1, of: 2 } } };
    expect(isDiagnosable({ ...snapshot, run: evaluation }, series)).toBe(false);
  });

  it('keeps its diagnoses when only its status changes', () => {
    const before = loaded([0, 1]);
    const now = after(before, { type: 'grown', ...snapshot, run: runAt(6, 200), events: [] });
    expect(now.diagnoses).toBe(before.diagnoses);
    expect(now.facts!.events).toBe(before.facts!.events);
    expect(now.facts!.run.status.step).toBe(6);
  });

  it('is gone after a failure, until the next snapshot', () => {
    const failed = after(loaded([0, 1]), { type: 'play' }, { type: 'failed', message: 'no right' });
    expect([failed.failure, failed.facts, failed.playing]).toEqual(['no right', null, false]);
    expect(after(failed, { type: 'grown', ...snapshot })).toBe(failed);
    expect(after(failed, { type: 'loading' }).failure).toBeNull();
    expect(after(failed, { type: 'loaded', snapshot }).facts!.run).toBe(snapshot.run);
  });

  it('has other diagnoses for another family', () => {
    const state = loaded([0, 1, 3]);
    expect(after(state, { type: 'family', family })).toBe(state);
    const other = after(state, { type: 'family', family: 'collapse_turn_sample' });
    expect([other.diagnoses.stops, other.settings.family]).toEqual([[], 'collapse_turn_sample']);
    expect(other.diagnoses.charts.map(({ id }) => id)).toEqual(['entropies']);
  });
});

describe('the files of a step', () => {
  const state = loaded([0, 1, 2, 3, 4]);
  const scores: CollapseFamily = {
    name: family,
    prompts: ['a', 'b'].map(text => ({ text, tokens: 1 })),
    samples: [1, 0, 1].map((column, i) => ({ episode: `e${i}`, group: column, turn: 1, text: `z${i}` })),
    log_probs_per_token: [
      [-3, -1],
      [-1, -2],
      [-1, -1.5],
    ],
    lengths: [1, 1, 1],
    column: [1, 0, 1],
    signatures: [0, 1],
    metrics: {},
    regime: 'diverse reasoning',
  };
  const matrix: CollapseEvent = { type: 'matrix', step: 3, family: scores };

  it('are the latest ones at the selected step', () => {
    expect(wantedFiles(state)).toEqual({ matrix: { step: 3, family }, groups: { step: 4 }, gradients: { step: 4 } });
    expect(wantedFiles(after(state, { type: 'step', step: 0 }))).toEqual({
      matrix: null,
      groups: null,
      gradients: null,
    });
  });

  it('keep the selected cell inside the matrix, and start another matrix at its first cell', () => {
    const cellAt = (row: number, column: number): CollapseEvent => ({ type: 'cell', cell: { row, column } });
    expect(after(state, cellAt(1, 1))).toBe(state);
    const shown = after(state, matrix);
    expect([shown.cell, episodeOfCell(shown)]).toEqual([{ row: 0, column: 0 }, 'e1']);
    const last = after(shown, cellAt(9, 9), { type: 'table', open: true });
    expect([last.cell, last.tableOpen, episodeOfCell(last)]).toEqual([{ row: 2, column: 1 }, true, 'e2']);
    expect(after(last, cellAt(2, 1))).toBe(last);
    expect(after(last, matrix)).toMatchObject({ cell: last.cell, tableOpen: true });
    expect(after(last, { type: 'matrix', step: 1, family: { ...scores } })).toMatchObject({
      cell: { row: 0, column: 0 },
      tableOpen: false,
    });
    expect(matrixInView(after(last, { type: 'unreadable', part: 'matrix', step: 3, message: 'torn' }))).toBeNull();
    expect(after(last, { type: 'matrix', step: 3, family: null }).files.matrix).toEqual({ step: 3, content: null });
  });

  it('judge the groups by the filter in effect', () => {
    const groups: PromptGroup[] = [
      { group_id: 0, tag: 'Lake', kept: true, episodes: [{ id: 'e', member: 0, score: 1, success: true, tokens: 1 }] },
    ];
    const change: RunEvent = {
      ...{ time: '', step: 2, kind: 'setting', message: '' },
      data: { key: 'actor_rollout_ref.rollout.rollout_filter_value', from: 0.9, to: 0.5 },
    };
    const changed = after(state, { type: 'grown', ...snapshot, events: [change] });
    const captionAt = (step: number) => {
      const file = after(changed, { type: 'groups', step, groups }).files.groups;
      return file && 'content' in file && file.content?.caption;
    };
    expect([captionAt(2), captionAt(3)]).toEqual([
      expect.stringContaining('top_p 0.9'),
      expect.stringContaining('top_p 0.5'),
    ]);
  });
});
