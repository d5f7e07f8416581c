// The changes of the Timeline page's state, without a page: what is open, what is in view, what the search finds, and
// what a growing run changes.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { paletteOf } from '../../../../extension/common/palette';
import { summaryOf } from '../../../../extension/run-data/timeline-measures';
import { barsOf, roundCeiling, totals } from '../../../../webview/timeline/overview-bars';
import { reduce, type TimelineEvent } from '../../../../webview/timeline/reducer';
import { causeOf, chainOf, kindTotals, rowsOfCall } from '../../../../webview/timeline/span-relations';
import {
  firstSettings,
  initialState,
  neighbour,
  overviewRange,
  wholeStep,
  type TimelineState,
} from '../../../../webview/timeline/state';
import { layOut, spanAt } from '../../../../webview/timeline/step-layout';
import { formatUs, timeTicks } from '../../../../webview/timeline/time-axis';
import type { Theme } from '../../../../webview/shared/theme';
import { runAt } from '../../../e2e/preview/data';
import { generatedStep } from '../../../e2e/preview/timeline-data';

const theme = { kind: 'dark', palette: paletteOf('dark') } as Theme;
const steps = [1, 2, 3, 4].map(step => summaryOf(generatedStep(step), 9));
const facts = { run: runAt(4, 200), kept: [1, 2, 4], current: '' };
const loaded: TimelineEvent = { type: 'loaded', snapshot: { ...facts, steps } };
const after = (...events: TimelineEvent[]): TimelineState => events.reduce(reduce, initialState(firstSettings, theme));
const opened = (step = 4, ...events: TimelineEvent[]): TimelineState =>
  after(loaded, { type: 'open', step }, { type: 'read', step, timeline: generatedStep(step) }, ...events);
const width = ({ open }: TimelineState): number => open!.range.to - open!.range.from;

describe('opening a step', () => {
  it('waits for its spans, and shows all of it', () => {
    const waiting = after(loaded, { type: 'open', step: 4 });
    expect([waiting.waiting, waiting.open]).toEqual(['reading', null]);
    const { open, waiting: over } = opened();
    expect(over).toBeNull();
    expect(open!.range).toEqual(wholeStep(generatedStep(4)));
  });

  it('ignores the answer for a step that is no longer wanted', () => {
    const state = after(
      loaded,
      { type: 'open', step: 4 },
      { type: 'open', step: 2 },
      { type: 'read', step: 4, timeline: generatedStep(4) },
    );
    expect([state.open, state.waiting]).toEqual([null, 'reading']);
  });

  it('whose spans are not kept says so, and a failed reading gives its reason', () => {
    expect(after(loaded, { type: 'open', step: 3 }, { type: 'read', step: 3, timeline: null }).waiting).toBe('missing');
    const failed = after(loaded, { type: 'open', step: 3 }, { type: 'unreadable', step: 3, message: 'damaged' });
    expect(failed.waiting).toEqual({ failed: 'damaged' });
  });

  it('leads to the kept steps before and after', () => {
    const state = opened(2);
    expect([neighbour(state, -1), neighbour(state, 1)]).toEqual([1, 4]);
    expect(neighbour(opened(4), 1)).toBeNull();
    const live = reduce(opened(4), { type: 'grown', facts: { ...facts, current: 'x' }, steps: [] });
    expect(neighbour(live, 1)).toBe('current');
  });
});

describe('what is in view', () => {
  it('never leaves the step and never vanishes, however one zooms and moves', () => {
    const whole = wholeStep(generatedStep(4));
    const event = fc.oneof(
      fc.double({ min: 0.01, max: 100, noNaN: true }).map((factor): TimelineEvent => ({ type: 'zoom-by', factor })),
      fc.double({ min: -9, max: 9, noNaN: true }).map((share): TimelineEvent => ({ type: 'pan-by', share })),
      fc.tuple(fc.integer(), fc.integer()).map(([from, to]): TimelineEvent => ({ type: 'zoom', range: { from, to } })),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 20 }), events => {
        const { open } = opened(4, ...events);
        expect(open!.range.from).toBeGreaterThanOrEqual(0);
        expect(open!.range.to).toBeLessThanOrEqual(whole.to + 1e-6);
        expect(width(opened(4, ...events))).toBeGreaterThanOrEqual(19.99);
      }),
    );
  });

  it('follows a selection outside of it', () => {
    const zoomed = opened(4, { type: 'zoom', range: { from: 0, to: 1000 } });
    const last = zoomed.open!.timeline.spans.start.length - 1;
    const { open } = reduce(zoomed, { type: 'select', span: last });
    expect(open!.range.to).toBeGreaterThan(open!.timeline.spans.start[last]);
    expect(open!.range.to - open!.range.from).toBeCloseTo(1000);
  });

  it('of the overview keeps the marked step', () => {
    const many = Array.from({ length: 200 }, (_, i) => ({ ...steps[0], step: i + 1 }));
    const state = after(
      { type: 'loaded', snapshot: { ...facts, steps: many } },
      { type: 'zoom-steps', range: { from: 0, to: 20 } },
      { type: 'mark', index: 90 },
    );
    expect(overviewRange(state)).toEqual({ from: 71, to: 91 });
    expect(overviewRange(reduce(state, { type: 'all' }))).toEqual({ from: 0, to: 200 });
  });
});

describe('the search', () => {
  it('finds spans whose kind or episode has all words, and moves through them', () => {
    const found = opened(4, { type: 'search', text: 'sampling g001-m02' });
    const { timeline, matches } = found.open!;
    expect(matches!.length).toBeGreaterThan(0);
    for (const i of matches!) {
      expect(timeline.names[timeline.spans.name[i]].name).toBe('sampling');
      expect(timeline.episodes[timeline.spans.episode[i]]).toContain('g001-m02');
    }
    const selected = (state: TimelineState): number | null => state.open!.selected;
    const first = reduce(found, { type: 'match', by: 1 });
    expect(selected(first)).toBe(matches![0]);
    expect(selected(reduce(first, { type: 'match', by: -1 }))).toBe(matches!.at(-1));
    expect(reduce(found, { type: 'search', text: ' ' }).open!.matches).toBeNull();
    expect(opened(4, { type: 'search', text: 'no such' }, { type: 'match', by: 1 }).open!.selected).toBeNull();
  });

  it('holds for the next step', () => {
    const next = reduce(reduce(opened(4, { type: 'search', text: 'g001' }), { type: 'open', step: 2 }), {
      type: 'read',
      step: 2,
      timeline: generatedStep(2),
    });
    expect(next.open!.matches!.length).toBeGreaterThan(0);
  });
});

describe('a growing run', () => {
  const grow = (state: TimelineState, step: number, current = ''): TimelineState =>
    reduce(state, {
      type: 'grown',
      facts: { ...facts, kept: [...facts.kept, step], current },
      steps: [summaryOf(generatedStep(step), 9)],
    });

  it('moves the mark of the overview only if it was on the newest step', () => {
    expect(grow(after(loaded), 5).marked).toBe(4);
    expect(grow(after(loaded, { type: 'mark', index: 1 }), 5).marked).toBe(1);
  });

  it('with follow opens each newest step, and the one in progress', () => {
    const following = after(loaded, { type: 'settings', settings: { follow: true } });
    expect(following.settings.step).toBe(4);
    const next = grow(following, 5);
    expect([next.settings.step, next.waiting]).toEqual([5, 'reading']);
    const live = grow(following, 5, 'first');
    expect(live.settings.step).toBe('current');
    expect(reduce(live, { type: 'open', step: 1 }).settings).toMatchObject({ follow: false, step: 1 });
  });

  it('reads the step in progress again, as it is zoomed, and stays with it when it has ended', () => {
    const live = { ...facts, current: 'first' };
    const partial = generatedStep(5, {}, true);
    const state = after(
      { type: 'loaded', snapshot: { ...live, steps } },
      { type: 'open', step: 'current' },
      { type: 'read', step: 'current', timeline: partial },
      { type: 'zoom', range: { from: 100, to: 5000 } },
      { type: 'grown', facts: { ...live, current: 'second' }, steps: [] },
    );
    expect(state.waiting).toBe('reading');
    const again = reduce(state, { type: 'read', step: 'current', timeline: generatedStep(5) });
    expect(again.open!.range).toEqual({ from: 100, to: 5000 });
    const ended = grow(again, 5);
    expect(ended.settings.step).toBe(5);
  });

  it('before the snapshot changes nothing', () => {
    const state = after();
    expect(grow(state, 5)).toBe(state);
  });
});

describe('the drawing of a step', () => {
  const timeline = generatedStep(10, { remote: true });
  const layout = layOut(timeline, true);

  it('has a place for every span, and no two on one place', () => {
    const { spans } = timeline;
    const places = new Map<string, number[]>();
    for (const i of spans.start.keys()) {
      expect(layout.rowOf[i]).toBeGreaterThanOrEqual(0);
      const key = `${layout.rowOf[i]} ${layout.layerOf[i]}`;
      places.set(key, [...(places.get(key) ?? []), i]);
    }
    for (const list of places.values())
      list
        .slice(1)
        .forEach((i, k) =>
          expect(spans.start[i]).toBeGreaterThanOrEqual(spans.start[list[k]] + spans.us[list[k]] - 1e-6),
        );
  });

  it('finds each span at its place', () => {
    const { spans } = timeline;
    for (const i of spans.start.keys()) {
      const row = layout.rows[layout.rowOf[i]];
      const y = row.top + (layout.layerOf[i] + 0.5) * row.layerHeight;
      expect(spanAt(layout, timeline, spans.start[i] + spans.us[i] / 2, y, 0)).toBe(i);
    }
    expect(spanAt(layout, timeline, -1e6, layout.rows[2].top + 1, 0)).toBe(-1);
  });

  it('leaves out the rows of the episodes on request', () => {
    expect(layOut(timeline, false).rows.filter(({ kind }) => kind === 'episode')).toEqual([]);
    expect(layout.rows.filter(({ kind }) => kind === 'episode')).toHaveLength(timeline.episodes.length);
    expect(layout.rows.map(({ label }) => label)).toEqual(
      expect.arrayContaining(['In flight', 'Staleness', 'Publishing']),
    );
  });
});

describe('who waited for whom', () => {
  const timeline = generatedStep(10);
  const { spans, names, episodes } = timeline;
  const named = (name: string): number[] => [...spans.start.keys()].filter(i => names[spans.name[i]].name === name);

  it('leads from a wait to what the awaited episode did until the wait was over', () => {
    for (const i of named('wait for the batch')) {
      const cause = causeOf(timeline, i);
      expect(names[spans.name[cause]].name).toBe('sampling');
      expect(spans.episode[cause]).toBe(spans.cause[i]);
      expect(spans.start[cause] + spans.us[cause]).toBeCloseTo(spans.start[i] + spans.us[i], 0);
    }
  });

  it('lists what an episode did in order, and the rows of a call, the longest first', () => {
    const chain = chainOf(timeline, named('sampling')[0]);
    expect(chain.map(i => names[spans.name[i]].name).slice(0, 3)).toEqual(['reset', 'prompt', 'sampling']);
    for (const call of named('generate')) {
      const rows = rowsOfCall(timeline, call);
      expect(rows).toHaveLength(spans.rows[call]);
      expect(rows.map(i => spans.us[i])).toEqual(rows.map(i => spans.us[i]).sort((a, b) => b - a));
    }
    const total = kindTotals(timeline).reduce((sum, { us }) => sum + us, 0);
    expect(total).toBeCloseTo(
      spans.us.reduce((sum, us) => sum + us, 0),
      3,
    );
    expect(episodes.length).toBe(32);
  });
});

describe('the overview', () => {
  it('has bars of all steps in view, at most as many as fit, with the same time', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3000 }), fc.integer({ min: 1, max: 400 }), (count, most) => {
        const many = Array.from({ length: count }, (_, i) => ({ ...steps[i % 4], step: i + 1 }));
        const bars = barsOf(many, { from: 0, to: count }, most);
        expect(bars.length).toBeLessThanOrEqual(most);
        expect([bars[0].from, bars.at(-1)!.to]).toEqual([0, count]);
        const time = bars.reduce((sum, { from, to, seconds }) => sum + seconds * (to - from), 0);
        expect(time).toBeCloseTo(
          many.reduce((sum, { seconds }) => sum + seconds, 0),
          6,
        );
      }),
      { numRuns: 50 },
    );
  });

  it('sums lanes over the steps in view', () => {
    const [{ lane, seconds }] = totals(steps, { from: 1, to: 3 });
    expect(lane).toBe('sampling');
    expect(seconds).toBeCloseTo(steps[1].exposed.sampling! + steps[2].exposed.sampling!);
  });
});

it('ticks are round, and as precise as their distance', () => {
  expect(timeTicks(0, 2_100_000, 5).map(({ label }) => label)).toEqual(['0', '0.5 s', '1.0 s', '1.5 s', '2.0 s']);
  expect(timeTicks(1_000_100, 1_000_420, 4).map(({ label }) => label)).toEqual([
    '1000.1 ms',
    '1000.2 ms',
    '1000.3 ms',
    '1000.4 ms',
  ]);
  expect([formatUs(12), formatUs(1234), formatUs(123_456), formatUs(1_234_567)]).toEqual([
    '12 µs',
    '1.23 ms',
    '123 ms',
    '1.23 s',
  ]);
  expect([roundCeiling(0), roundCeiling(1.01), roundCeiling(47)]).toEqual([1, 1.5, 50]);
});
