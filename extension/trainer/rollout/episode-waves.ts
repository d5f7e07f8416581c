// Waves of a rollout: episodes that become ready at about the same time are played on together, since a larger batch
// generates faster per episode.
import { appendAll } from '../../common/lists';
import type { EpisodeEntry } from './environment-state-manager';

/** Share of the generation time to wait for more episodes, since a larger batch generates faster. */
export const gatheringShare = 1 / 20;
/** Minimum waiting time in milliseconds, and the waiting time before the first generation. */
export const leastGatheringMs = 2;
export const firstGatheringMs = 50;

/**
 * Plays episodes on in waves, in env_id order: those ready within `gatherMs` of the first go together. `ask` reports
 * all `count` episodes as they become ready. Resolves when all waves have ended.
 */
export async function inWaves(
  count: number,
  gatherMs: number,
  ask: (report: (ready: EpisodeEntry[]) => void) => Promise<void>,
  play: (wave: EpisodeEntry[]) => Promise<void>,
): Promise<void> {
  const waves: Promise<void>[] = [];
  const ready: EpisodeEntry[] = [];
  let readyCount = 0;
  let timer: NodeJS.Timeout | undefined;
  const go = () => {
    clearTimeout(timer);
    timer = undefined;
    waves.push(play(ready.splice(0).sort((a, b) => a.env_id - b.env_id)));
  };
  try {
    await ask(entries => {
      appendAll(ready, entries);
      readyCount += entries.length;
      if (readyCount === count) go();
      else if (gatherMs < Infinity) timer ??= setTimeout(go, gatherMs);
    });
  } finally {
    clearTimeout(timer);
    await Promise.all(waves);
  }
}
