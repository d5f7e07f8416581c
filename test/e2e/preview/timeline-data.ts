// A generated timeline for previews and tests of the Timeline page: steps of episodes that are sampled in waves, scored
// and trained on. Recorded by the trainer's own recorder with a clock of its own, so that it has the form of real ones.
import { StepSpans } from '../../../extension/trainer/timeline/step-spans';
import { episodeSpans, type StepTimeline } from '../../../extension/run-data/timeline';

/** A number in [0, 1) that depends only on its arguments. */
const drawn = (...numbers: number[]): number => {
  const mixed = numbers.reduce((hash, number) => Math.imul(hash ^ (number + 0x9e37), 0x85ebca6b) >>> 0, 0x811c9dc5);
  return ((mixed ^ (mixed >>> 13)) >>> 0) / 2 ** 32;
};

/** Time at which step 1 begins. */
const origin = Date.UTC(2026, 0, 1);

export interface GeneratedStep {
  episodes?: number;
  turns?: number;
  /** Whether a server samples: each row is a request, and the weights are published. */
  remote?: boolean;
}

/** The spans of a step; `partial` leaves out what follows the rollout. */
export function generatedStep(
  step: number,
  { episodes = 32, turns = 3, remote = false }: GeneratedStep = {},
  partial = false,
): StepTimeline {
  const spans = new StepSpans(step);
  const start = origin + step * 10_000;
  let now = start;
  const id = (e: number): string =>
    `train-${String(step).padStart(6, '0')}-g${String(e >> 3).padStart(3, '0')}-m${String(e & 7).padStart(2, '0')}`;
  const all = Array.from({ length: episodes }, (_, e) => e);
  const call = (lane: 'scoring' | 'update' | 'diagnosis' | 'checkpoint' | 'phases', name: string, ms: number): void => {
    spans.add({ lane, name, from: now, to: now + ms, rows: episodes, tokens: episodes * 90 });
    now += ms;
  };
  if (remote) {
    spans.add({ lane: 'publishing', name: 'save_weights_for_sampler', from: now, to: now + 120 });
    spans.add({ lane: 'requests', name: 'save_weights_for_sampler', from: now, to: now + 120 });
    now += 120;
    spans.noteStaleness(now, 1);
  }
  const rollout = now;
  spans.add({ lane: 'environments', name: 'reset', from: now, to: now + 9, rows: episodes });
  for (const e of all)
    spans.add({
      lane: 'episodes',
      name: episodeSpans.reset,
      from: now,
      to: now + 3 + 6 * drawn(step, e),
      episode: id(e),
    });
  now += 9;
  for (let turn = 1; turn <= turns; turn++) {
    const playing = all.filter(e => turn === 1 || drawn(step, e, turn) > 0.25);
    const prompted = now + 4;
    const samplings = playing.map(e => 120 + 260 * drawn(step, e, turn, 1));
    const last = playing[samplings.indexOf(Math.max(...samplings))];
    const end = prompted + Math.max(...samplings);
    spans.add({
      lane: 'sampling',
      name: 'generate',
      from: prompted,
      to: end,
      rows: playing.length,
      tokens: playing.length * 40,
    });
    for (const [k, e] of playing.entries()) {
      const about = { lane: 'episodes' as const, episode: id(e), turn };
      const sampled = prompted + samplings[k];
      const answered = end + 3 + 22 * drawn(step, e, turn, 2);
      spans.add({ ...about, name: episodeSpans.prompt, from: now, to: prompted });
      spans.add({
        ...about,
        name: episodeSpans.sampling,
        from: prompted,
        to: sampled,
        tokens: Math.round(samplings[k] / 4),
      });
      if (remote) spans.add({ lane: 'requests', name: 'asample', from: prompted, to: sampled });
      if (e !== last) spans.add({ ...about, name: episodeSpans.batchWait, from: sampled, to: end, cause: id(last) });
      spans.add({ ...about, name: episodeSpans.environment, from: end, to: answered });
      spans.add({ ...about, name: episodeSpans.waveWait, from: answered, to: end + 25, cause: id(last) });
    }
    spans.add({ lane: 'environments', name: 'step', from: end, to: end + 25, rows: playing.length });
    now = end + 25;
  }
  spans.add({ lane: 'phases', name: 'gen', from: rollout, to: now });
  if (partial) return spans.timeline(now, true);
  const phase = (name: string, work: () => void): void => {
    const from = now;
    work();
    spans.add({ lane: 'phases', name, from, to: now });
  };
  phase('filter', () => (now += 6));
  if (step % 5 === 0) {
    const from = now;
    phase('collapse_metrics', () => call('diagnosis', 'crossScore', 310));
    spans.add({ lane: 'diagnosis', name: 'collapse_metrics', from, to: now });
  }
  phase('old_log_prob', () => call('scoring', 'score', 180));
  phase('adv', () => (now += 5));
  phase('update_actor', () => {
    for (let k = 0; k < 4; k++) call('update', 'update', 150 + 40 * drawn(step, k, 3));
  });
  phase('dump_rollouts', () => (now += 14));
  if (step % 10 === 0) {
    phase('save_checkpoint', () => call('checkpoint', 'save_checkpoint', 160));
  }
  return spans.timeline(now, false);
}
