// Places and marks of events, and the events that a resume keeps.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { markKinds, placeEvents, survivesResume } from '../../../extension/run-data/event-marks';
import { eventSchema, type RunEvent } from '../../../extension/run-data/run-events';

const event = (step: number, kind: RunEvent['kind'], data?: Record<string, unknown>): RunEvent => ({
  ...{ time: '', step, kind, message: '' },
  ...(data && { data }),
});
const reload = (at: number, to: string, step: number) =>
  event(at, 'environment_reload', { tag: 'T', from: 'a', to, files: [], step, ms: 1 });
const ran = (step: number, version: string) => event(step - 1, 'environment_ran', { tag: 'T', version, step });
const placesOf = (...events: RunEvent[]) => placeEvents(events).map(({ step, mark }) => [step, mark]);

describe('places', () => {
  test('an edit is marked at the first step whose episodes ran it', () => {
    expect(placesOf(reload(4, 'b', 5), ran(6, 'b'))).toEqual([
      [6, 'version'],
      [6, undefined],
    ]);
  });

  test('an edit that no episode has run yet is marked at the first step that may run it', () => {
    expect(placesOf(reload(4, 'b', 5), ran(6, 'c'))[0]).toEqual([5, 'version']);
  });

  test('an edit that is repeated later has both places', () => {
    const places = placesOf(reload(4, 'b', 5), ran(5, 'b'), reload(5, 'c', 6), reload(7, 'b', 8), ran(9, 'b'));
    expect(places.filter(([, mark]) => mark === 'version')).toEqual([
      [5, 'version'],
      [6, 'version'],
      [9, 'version'],
    ]);
  });

  test('an alarm is marked at its own step, changed code after the checkpoint, all others at the finished step', () => {
    expect(
      placesOf(
        event(6, 'alarm', { step: 7, metric: 'm' }),
        event(4, 'environment_version', { tag: 'T', from: 'a', to: 'b' }),
        event(4, 'resume'),
        event(4, 'environment_refused', {}),
        event(4, 'checkpoint'),
        event(4, 'state'),
      ),
    ).toEqual([
      [7, 'alarm'],
      [5, 'version'],
      [4, 'resume'],
      [4, 'refused'],
      [4, 'checkpoint'],
      [4, undefined],
    ]);
  });

  test('of any events: each is placed once, in order, never before its finished step, with a known mark', () => {
    const kinds = eventSchema.shape.kind.options;
    const anyEvent = fc
      .tuple(fc.nat(20), fc.constantFrom(...kinds), fc.constantFrom('a', 'b'), fc.nat(3))
      .map(([step, kind, version, later]) =>
        event(step, kind, {
          ...{ tag: 'T', from: 'x', to: version, version, files: [], ms: 1 },
          step: step + later,
        }),
      );
    fc.assert(
      fc.property(fc.array(anyEvent), events => {
        events.sort((a, b) => a.step - b.step);
        const placed = placeEvents(events);
        expect(placed.map(each => each.event)).toEqual(events);
        for (const { event: of, step, mark } of placed) {
          expect(step).toBeGreaterThanOrEqual(of.step);
          expect(mark === undefined || markKinds.includes(mark)).toBe(true);
        }
      }),
    );
  });
});

describe('a resume from step 4', () => {
  const keeps = (of: RunEvent) => survivesResume(of, 4);

  test('keeps the history of the steps that remain', () => {
    for (const kind of ['checkpoint', 'resume', 'state', 'environment_refused'] as const) {
      expect(keeps(event(4, kind)), kind).toBe(true);
      expect(keeps(event(5, kind)), kind).toBe(false);
    }
    expect(keeps(event(4, 'warning', { step: 5 }))).toBe(false); // step 5 is trained again
  });

  test('removes what it repeats or undoes', () => {
    for (const kind of ['setting', 'alarm', 'environment_reload', 'environment_ran', 'environment_error'] as const)
      expect(keeps(event(4, kind, { step: 5 })), kind).toBe(false);
  });
});
