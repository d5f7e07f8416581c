// Waves of a rollout: episodes that become ready at about the same time are generated in one call. In a larger batch,
// generation takes less time per episode. agent-proxy.ts plays the waves; environment-state-manager.ts handles
// environments that fail.
import { appendAll } from '../../common/lists';
import type { EpisodeEntry } from './environment-state-manager';

/** Time to wait for further episodes, as a share of the duration of the last generation. */
export const gatheringShare = 1 / 20;
/** Minimum time to wait for further episodes, in milliseconds. */
export const leastGatheringMs = 2;
/** Time to wait before the first generation, in milliseconds. */
export const firstGatheringMs = 50;

/**
 * Plays `count` episodes in waves. The episodes of a wave are in env_id order. A wave begins `gatherMs` after its first
 * episode became ready, or as soon as all `count` episodes are ready. Resolves after all waves have ended.
 * @param ask must call `report` with each of the `count` episodes as soon as this episode is ready
 * @param play plays one wave
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
