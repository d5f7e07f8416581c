// Spans of a step in memory: their order, what is in progress, and the limit, beyond which the shortest are added up.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StepSpans } from '../../../../extension/trainer/timeline/step-spans';

const from = 1_700_000_000_000;

describe('the spans of a step', () => {
  it('are in order of their start, the longest first, relative to the first', () => {
    const spans = new StepSpans(3);
    spans.add({ lane: 'update', name: 'update', from: from + 5, to: from + 9, rows: 4, tokens: 80 });
    spans.add({ lane: 'phases', name: 'adv', from, to: from + 1 });
    spans.add({ lane: 'phases', name: 'gen', from, to: from + 4 });
    const { start, seconds, names, spans: columns } = spans.timeline(from + 20, false);
    expect([start, seconds]).toEqual([from, 0.02]);
    expect(Array.from(columns.name, i => names[i].name)).toEqual(['gen', 'adv', 'update']);
    expect([...columns.start]).toEqual([0, 0, 5000]);
    expect([...columns.us]).toEqual([4000, 1000, 4000]);
    expect([columns.rows[2], columns.tokens[2]]).toEqual([4, 80]);
  });

  it('that have not ended end now in a partial timeline, and are left out at the end of the step', () => {
    const spans = new StepSpans(3);
    const open = spans.begin({ lane: 'scoring', name: 'score', from });
    expect([...spans.timeline(from + 7, true).spans.us]).toEqual([7000]);
    expect(spans.timeline(from + 7, false).spans.us).toHaveLength(0);
    spans.end(open, from + 9, { tokens: 5 });
    spans.end(open, from + 11); // a second end has no effect
    expect([...spans.timeline(from + 20, false).spans.us]).toEqual([9000]);
  });

  it('name the episodes and the one waited for', () => {
    const spans = new StepSpans(3);
    spans.add({ lane: 'episodes', name: 'wait', from, to: from + 1, episode: 'b', cause: 'a', turn: 2 });
    const { episodes, spans: columns } = spans.timeline(from + 1, false);
    expect([episodes[columns.episode[0]], episodes[columns.cause[0]], columns.turn[0]]).toEqual(['b', 'a', 2]);
  });

  it('beyond the limit are added up by name, the shortest first, and none is lost', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(3), fc.integer({ min: 0, max: 50 })), { maxLength: 200 }), list => {
        const spans = new StepSpans(1, 20);
        list.forEach(([kind, ms], i) =>
          spans.add({ lane: 'requests', name: `r${kind}`, from: from + i, to: from + i + ms }),
        );
        const { spans: kept, merged, limit } = spans.timeline(from + 1000, false);
        expect(kept.us.length).toBe(Math.min(limit, list.length));
        const count = merged.reduce((sum, spans) => sum + spans.count, kept.us.length);
        const seconds = merged.reduce(
          (sum, { seconds }) => sum + seconds,
          kept.us.reduce((sum, us) => sum + us / 1e6, 0),
        );
        expect([count, spans.count]).toEqual([list.length, list.length]);
        expect(seconds).toBeCloseTo(
          list.reduce((sum, [, ms]) => sum + ms / 1000, 0),
          6,
        );
      }),
    );
  });

  it('record a staleness when it changes', () => {
    const spans = new StepSpans(1);
    for (const [at, steps] of [
      [0, 0],
      [1, 0],
      [2, 1],
      [3, 1],
      [4, 0],
    ])
      spans.noteStaleness(from + at, steps);
    spans.add({ lane: 'phases', name: 'gen', from, to: from + 9 });
    expect(spans.timeline(from + 9, false).staleness).toEqual([
      [0, 0],
      [2000, 1],
      [4000, 0],
    ]);
  });
});
