// Places of events in a run: the step to which each event belongs, and the kind of mark that views draw for the event.
// Views use only these functions, so that an event has the same place and the same mark everywhere. An event records
// the number of finished steps (`step`); an alarm or an edit of environment code belongs to a later step. Pure functions.
import { environmentRanSchema, environmentReloadSchema, pluginReloadSchema } from './run-events';
import type { RunEvent } from './run-events';

export type MarkKind = 'alarm' | 'error' | 'refused' | 'version' | 'resume' | 'setting' | 'checkpoint';

/** All kinds of marks, most severe first. */
export const markKinds: readonly MarkKind[] = [
  'alarm',
  'error',
  'refused',
  'version',
  'resume',
  'setting',
  'checkpoint',
];

const kinds: Partial<Record<RunEvent['kind'], MarkKind>> = {
  alarm: 'alarm',
  early_stop: 'alarm',
  environment_error: 'error',
  environment_refused: 'refused',
  environment_version: 'version',
  environment_reload: 'version',
  plugin_error: 'error',
  plugin_refused: 'refused',
  plugin_version: 'version',
  plugin_reload: 'version',
  resume: 'resume',
  setting: 'setting',
  checkpoint: 'checkpoint',
};

/** An event at the step to which it belongs; `mark` is undefined for events that are not drawn. */
export interface PlacedEvent {
  event: RunEvent;
  step: number;
  mark: MarkKind | undefined;
}

/** An event that views draw, at the step to which it belongs. */
export interface MarkedEvent extends PlacedEvent {
  mark: MarkKind;
}

/** Returns the events that a view of several runs draws: all marks except checkpoints, which would hide the others. */
export const comparedMarks = (events: readonly RunEvent[]): MarkedEvent[] =>
  placeEvents(events).filter(
    (placed): placed is MarkedEvent => placed.mark !== undefined && placed.mark !== 'checkpoint',
  );

/**
 * Returns the events in their order, each with its step. An edit of environment code belongs to the first step whose
 * episodes ran the new code or, until such a step exists, to the first step whose episodes may run it; an edit of
 * a plug-in belongs to the first step that uses it. A change of code that a resume found belongs to the step after the checkpoint. An alarm belongs to the step whose
 * metrics raised it. All other events belong to the newest step that was finished when they were written.
 */
export function placeEvents(events: readonly RunEvent[]): PlacedEvent[] {
  const placed: PlacedEvent[] = [];
  const edits = new Map<string, PlacedEvent[]>(); // edits that no step is known to have run, by tag and version
  for (const event of events) {
    const entry: PlacedEvent = { event, step: event.step, mark: kinds[event.kind] };
    placed.push(entry);
    switch (event.kind) {
      case 'environment_reload': {
        const edit = environmentReloadSchema.safeParse(event.data).data;
        if (!edit) break;
        entry.step = edit.step;
        const key = keyOf(edit.tag, edit.to);
        edits.set(key, [...(edits.get(key) ?? []), entry]);
        break;
      }
      case 'environment_ran': {
        const ran = environmentRanSchema.safeParse(event.data).data;
        if (!ran) break;
        entry.step = ran.step;
        const key = keyOf(ran.tag, ran.version);
        for (const edit of edits.get(key) ?? []) edit.step = ran.step;
        edits.delete(key);
        break;
      }
      case 'plugin_reload': {
        const edit = pluginReloadSchema.safeParse(event.data).data;
        if (edit) entry.step = edit.step;
        break;
      }
      case 'plugin_version':
      case 'environment_version':
        entry.step = event.step + 1;
        break;
      case 'alarm':
        if (typeof event.data?.step === 'number') entry.step = event.data.step;
        break;
      default:
    }
  }
  return placed;
}

const keyOf = (tag: string, version: string): string => JSON.stringify([tag, version]);

/** Kinds of events that record what happened to the run, rather than results of a step, which a resume repeats. */
const history: ReadonlySet<RunEvent['kind']> = new Set([
  'state',
  'checkpoint',
  'resume',
  'download',
  'early_stop',
  'environment_refused',
  'environment_mended',
  'environment_debug',
  'plugin_refused',
  'plugin_mended',
  'warning',
]);

/**
 * Whether a resume from the checkpoint of step `step` keeps an event that was written after this checkpoint. The events
 * of later steps are removed with these steps. Changes of settings and of environment code are removed, because the
 * resumed run has the settings of its checkpoint, and reports changed code itself.
 */
export function survivesResume({ kind, step: finished, data }: RunEvent, step: number): boolean {
  const of = typeof data?.step === 'number' ? data.step : finished;
  return history.has(kind) && Math.max(of, finished) <= step;
}
