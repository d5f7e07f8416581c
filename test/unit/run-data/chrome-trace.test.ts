// The exported trace follows the rules of the Trace Event Format: integer microseconds in order, named processes and
// threads, complete events that nest within their thread, and flows that connect two of them.
import { describe, expect, it } from 'vitest';
import { traceEvents, traceText, type TraceEvent } from '../../../extension/run-data/chrome-trace';
import { generatedStep } from '../../e2e/preview/timeline-data';

const steps = [generatedStep(4, { remote: true }), generatedStep(5, { remote: true })];
const events = [...traceEvents('lake', steps)];
const of = (ph: TraceEvent['ph']): TraceEvent[] => events.filter(event => event.ph === ph);
const threadOf = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`;

describe('the exported trace', () => {
  it('is a JSON object with the events', () => {
    const parsed = JSON.parse([...traceText('lake', steps)].join('')) as { traceEvents: TraceEvent[] };
    expect(parsed.traceEvents).toEqual(JSON.parse(JSON.stringify(events)));
    expect(parsed.traceEvents.length).toBeGreaterThan(500);
  });

  it('has times in whole microseconds, in order, from 0 on, and durations of complete events only', () => {
    const timed = events.filter(({ ph }) => ph !== 'M');
    expect(timed.every(({ ts, dur = 0 }) => Number.isInteger(ts) && ts >= 0 && Number.isInteger(dur) && dur >= 0)).toBe(
      true,
    );
    expect(timed.map(({ ts }) => ts)).toEqual(timed.map(({ ts }) => ts).sort((a, b) => a - b));
    expect(timed.every(({ ph, dur }) => (ph === 'X') === (dur !== undefined))).toBe(true);
    expect(timed[0].ts).toBe(0);
    const last = of('X').reduce((most, { ts, dur = 0 }) => Math.max(most, ts + dur), 0);
    expect(last).toBe(Math.round((steps[1].start - steps[0].start) * 1000 + steps[1].seconds * 1e6));
  });

  it('names every process and thread, before the first event', () => {
    const named = (name: string) =>
      new Set(
        of('M')
          .filter(event => event.name === name)
          .map(event => (name === 'process_name' ? event.pid : threadOf(event))),
      );
    for (const event of of('X')) {
      expect(named('process_name')).toContain(event.pid);
      expect(named('thread_name')).toContain(threadOf(event));
    }
    const order = events.map(({ ph }) => ph === 'M');
    expect(order.lastIndexOf(true)).toBeLessThan(order.indexOf(false));
    const labels = of('M')
      .filter(({ name }) => name === 'thread_name')
      .map(({ args }) => args!.name);
    expect(labels).toEqual(
      expect.arrayContaining(['Steps', 'Sampling', 'Update', 'Requests 2', 'train-000004-g000-m00']),
    );
  });

  it('nests the complete events of a thread', () => {
    const threads = grouped(of('X'));
    for (const list of threads.values()) {
      const open: number[] = [];
      for (const { ts, dur = 0 } of list) {
        while (open.length > 0 && open[open.length - 1] <= ts) open.pop();
        if (open.length > 0) expect(ts + dur).toBeLessThanOrEqual(open[open.length - 1]);
        open.push(ts + dur);
      }
    }
  });

  it('has all spans, with their arguments', () => {
    const spans = of('X').filter(({ cat }) => cat !== 'step');
    expect(spans).toHaveLength(steps[0].spans.start.length + steps[1].spans.start.length);
    const wait = spans.find(({ name }) => name === 'wait for the batch')!;
    expect(wait.args).toMatchObject({
      step: 4,
      episode: expect.stringMatching(/^train-000004-/),
      waited_for: expect.stringMatching(/^train-000004-/),
    });
    expect(spans.find(({ name }) => name === 'generate')!.args).toMatchObject({ rows: 32, tokens: 1280 });
  });

  it('counts requests in flight and staleness', () => {
    const flight = of('C').filter(({ name }) => name === 'requests in flight');
    expect(Math.max(...flight.map(({ args }) => Number(args!.value)))).toBe(32);
    expect(flight.at(-1)!.args).toEqual({ value: 0 });
    expect(
      of('C')
        .filter(({ name }) => name === 'staleness')
        .map(({ args }) => args!.value),
    ).toEqual([1, 1]);
  });

  it('connects a wait with the episode that it waited for', () => {
    const [starts, ends] = [of('s'), of('f')];
    expect(starts.map(({ id }) => id).sort()).toEqual(ends.map(({ id }) => id).sort());
    expect(new Set(starts.map(({ id }) => id)).size).toBe(starts.length);
    expect(starts.length).toBeGreaterThan(50);
  });

  it('of steps that overlap still nests', () => {
    const early = { ...steps[1], start: steps[0].start + 400 };
    const list = [...traceEvents('lake', [steps[0], early])].filter(({ ph }) => ph === 'X');
    for (const events of grouped(list).values()) {
      const open: number[] = [];
      for (const { ts, dur = 0 } of events) {
        while (open.length > 0 && open[open.length - 1] <= ts) open.pop();
        if (open.length > 0) expect(ts + dur).toBeLessThanOrEqual(open[open.length - 1]);
        open.push(ts + dur);
      }
    }
  });
});

function grouped(list: readonly TraceEvent[]): Map<string, TraceEvent[]> {
  const found = new Map<string, TraceEvent[]>();
  for (const event of list) found.set(threadOf(event), [...(found.get(threadOf(event)) ?? []), event]);
  return found;
}
