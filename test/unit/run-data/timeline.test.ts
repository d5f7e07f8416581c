// The timeline's files: they hold what was recorded, whatever is cut off, and their measures count every instant once.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeStep, encodeStep, lanes, noSpans, type StepTimeline } from '../../../extension/run-data/timeline';
import {
  busySeconds,
  concurrency,
  disjointRows,
  exposedSeconds,
  inFlight,
  nestingRows,
  peakAndMean,
} from '../../../extension/run-data/timeline-measures';
import { generatedStep } from '../../e2e/preview/timeline-data';

const lines = (step: StepTimeline): string[] => [...encodeStep(step)].join('').split('\n');

/** A step with one span per entry: lane, start and duration in microseconds. */
function stepOf(
  entries: readonly (readonly [lane: (typeof lanes)[number], start: number, us: number])[],
): StepTimeline {
  const sorted = entries.toSorted(([, a, x], [, b, y]) => a - b || y - x);
  const spans = noSpans(sorted.length);
  sorted.forEach(([lane, start, us], i) => {
    spans.name[i] = lanes.indexOf(lane);
    spans.start[i] = start;
    spans.us[i] = us;
    spans.episode[i] = lane === 'episodes' ? 0 : -1;
  });
  const seconds = Math.max(0, ...entries.map(([, start, us]) => (start + us) / 1e6));
  const names = lanes.map(lane => ({ lane, name: lane === 'episodes' ? 'sampling' : lane }));
  const rest = { step: 3, start: 1e12, partial: false, episodes: ['train-000003-g000-m00'], staleness: [], limit: 10 };
  return { ...rest, seconds, names, merged: [], spans };
}

const entry = fc.tuple(fc.constantFrom(...lanes), fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 0, max: 900 }));

describe('the file of a step', () => {
  it('holds every span', () => {
    const step = generatedStep(12, { episodes: 700, turns: 4, remote: true });
    for (const column of ['start', 'us'] as const)
      step.spans[column] = step.spans[column].map(value => Math.round(value));
    expect(step.spans.start.length).toBeGreaterThan(8192); // more than one line of columns
    expect(decodeStep(lines(step))).toEqual(step);
  });

  it('without spans is read as such', () => {
    const empty = stepOf([]);
    expect(decodeStep(lines(empty))).toEqual(empty);
  });

  it('that was cut off has the spans of its complete lines', () => {
    const step = generatedStep(12, { episodes: 700, turns: 4 });
    expect(decodeStep(lines(step).slice(0, 2)).spans.start).toHaveLength(8192);
    expect(decodeStep(lines(step).slice(0, 1)).spans.start).toHaveLength(0);
  });

  it('is refused if a span names what the first line lacks, or a column is short', () => {
    const [head, columns] = lines(generatedStep(1));
    const changed = (change: (line: Record<string, number[]>) => void): string[] => {
      const line = JSON.parse(columns) as Record<string, number[]>;
      change(line);
      return [head, JSON.stringify(line)];
    };
    expect(() => decodeStep(changed(line => (line.name[3] = 99)))).toThrow(/span 3 names a kind/);
    expect(() => decodeStep(changed(line => (line.cause[0] = 5000)))).toThrow(/names a kind or an episode/);
    expect(() => decodeStep(changed(line => line.turn.pop()))).toThrow(/column turn has/);
    expect(() => decodeStep([columns])).toThrow();
  });
});

describe('measures', () => {
  it('give an instant that lanes share to the one that the rest waits for', () => {
    const step = stepOf([
      ['phases', 0, 1_000_000],
      ['sampling', 0, 600_000],
      ['environments', 500_000, 300_000],
      ['update', 700_000, 200_000],
    ]);
    expect(exposedSeconds(step)).toEqual({
      update: 0.2,
      sampling: 0.6,
      environments: expect.closeTo(0.1),
      phases: expect.closeTo(0.1),
    });
    expect(busySeconds(step)).toMatchObject({ environments: 0.3, update: 0.2 });
  });

  it('never count an instant twice, and cover whatever any lane covers', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 60 }), entries => {
        const step = stepOf(entries);
        const exposed = Object.values(exposedSeconds(step)).reduce((sum, seconds) => sum + seconds, 0);
        const marked = new Set<number>();
        for (const [lane, start, us] of entries)
          if (lane !== 'requests' && lane !== 'episodes') for (let t = start; t < start + us; t++) marked.add(t);
        expect(exposed).toBeCloseTo(marked.size / 1e6, 9);
      }),
    );
  });

  it('count the rows in flight, or the requests where there are any', () => {
    expect(
      inFlight(
        stepOf([
          ['episodes', 0, 10],
          ['episodes', 4, 10],
        ]),
      ),
    ).toEqual({
      at: Float64Array.of(0, 4, 10, 14),
      value: Float64Array.of(1, 2, 1, 0),
    });
    const remote = stepOf([
      ['episodes', 0, 10],
      ['requests', 0, 5],
      ['requests', 5, 5],
    ]);
    expect(inFlight(remote)).toEqual({ at: Float64Array.of(0, 10), value: Float64Array.of(1, 0) });
    expect(peakAndMean(inFlight(remote), 20)).toEqual([1, 0.5]);
  });

  it('equal a count at each instant', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(50), fc.integer({ min: 1, max: 30 })), { maxLength: 30 }), found => {
        const sorted = found.toSorted(([a], [b]) => a - b);
        const { at, value } = concurrency({
          starts: sorted.map(([start]) => start),
          ends: sorted.map(([start, length]) => start + length),
        });
        for (let t = 0; t < 90; t++) {
          const open = found.filter(([start, length]) => start <= t && t < start + length).length;
          expect(value[at.findLastIndex(time => time <= t)] ?? 0).toBe(open);
        }
      }),
    );
  });

  it('put spans on rows in which they nest or are disjoint', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 60 }), entries => {
        const { spans } = stepOf(entries);
        const list = [...spans.start.keys()];
        const { rows } = nestingRows(spans, list);
        for (const i of list)
          for (const j of list.slice(0, i)) {
            if (rows[i] !== rows[j]) continue;
            const [a, b] = [spans.start[j], spans.start[j] + spans.us[j]];
            const [c, d] = [spans.start[i], spans.start[i] + spans.us[i]];
            expect(c >= b || (c >= a && d <= b)).toBe(true);
          }
        const apart = disjointRows(spans, list);
        const flight = concurrency({
          starts: list.map(i => spans.start[i]),
          ends: list.map(i => spans.start[i] + spans.us[i]).sort((a, b) => a - b),
        });
        if (list.every(i => spans.us[i] > 0)) expect(apart.count).toBe(peakAndMean(flight, 1)[0]);
        for (const i of list)
          for (const j of list.slice(0, i))
            if (apart.rows[i] === apart.rows[j])
              expect(spans.start[i]).toBeGreaterThanOrEqual(spans.start[j] + spans.us[j]);
      }),
    );
  });
});
