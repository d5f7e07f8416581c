// In-memory host for the Timeline page, from generated steps.
import {
  timelineReady,
  timelineExport,
  timelineStepAt,
  type TimelineSnapshot,
} from '../../../extension/protocol/timeline-page';
import { summaryOf } from '../../../extension/run-data/timeline-measures';
import type { StepTimeline } from '../../../extension/run-data/timeline';
import { runAt } from './data';
import type { MemoryHost } from './memory-host';
import { generatedStep, type GeneratedStep } from './timeline-data';

/** `finished`: 24 steps. `live`: the same, and a step in progress. `large`: 5000 steps, 1024 episodes each. */
export type TimelineScenario = 'finished' | 'live' | 'large' | 'empty' | 'remote';

const sizes: Record<TimelineScenario, GeneratedStep> = {
  finished: {},
  live: {},
  large: { episodes: 1024, turns: 5 },
  empty: {},
  remote: { remote: true, episodes: 64 },
};

export function timelineHost(scenario: TimelineScenario): MemoryHost {
  const count = scenario === 'empty' ? 0 : scenario === 'large' ? 5000 : 24;
  const live = scenario === 'live' || scenario === 'remote';
  const size = sizes[scenario];
  const run = { ...runAt(count, 200, live ? {} : { state: 'finished', phase: 'idle' }), live };
  const of = (step: number): StepTimeline => generatedStep(step, size);
  const sample = Array.from({ length: Math.min(count, 24) }, (_, i) => summaryOf(of(i + 1), 1));
  const steps = Array.from({ length: count }, (_, i) => ({ ...sample[i % 24], step: i + 1 }));
  const kept = steps.map(({ step }) => step).filter(step => step > count - 100 || step % 100 === 0);
  return {
    answer(method, params): unknown {
      if (method === timelineReady.method)
        return { run, steps, kept, current: live ? 'now' : '' } satisfies TimelineSnapshot;
      if (method === timelineExport.method) return true;
      if (method !== timelineStepAt.method) throw new Error(`preview: no answer to ${method}`);
      const { step } = params as { step: number | 'current' };
      if (step === 'current') return live ? generatedStep(count + 1, size, true) : null;
      return kept.includes(step) ? of(step) : null;
    },
  };
}
