// Records each episode (Gymnasium's RecordEpisodeStatistics, plus the data for a replay). The info of the last step
// contains `episode_return` and `episode_length`, whose averages a run logs as metrics. A listener receives the
// recorded episode.
import { appendFileSync } from 'node:fs';
import type { z } from 'zod';
import type { Action, EnvironmentDefinition, Info, StepResult } from '../environment';
import { after, textOf, wrap } from './wrap';

/** An episode as plain data, without images. `env`, `config`, `seed`, `member` and `actions` suffice to replay it. */
export interface RecordedEpisode {
  env: string;
  config: unknown;
  seed: number;
  member: number;
  mode: 'train' | 'val';
  actions: Action[];
  observation: string;
  steps: { observation: string; reward: number; terminated: boolean; truncated: boolean; info: Info }[];
}

/**
 * @param onEpisode receives each episode once, when it ends. If an episode is closed or reset before its end,
 * `onEpisode` receives the episode at that moment, unless the episode has no steps. If `onEpisode` throws, the episode
 * fails.
 */
export function withRecord<Schema extends z.ZodType>(
  definition: EnvironmentDefinition<Schema>,
  onEpisode: (episode: RecordedEpisode) => void = () => undefined,
): EnvironmentDefinition<Schema> {
  return wrap(definition, (inner, config) => {
    let episode: RecordedEpisode | undefined;
    let recorded = false;
    const record = () => {
      if (episode && !recorded && episode.steps.length > 0) onEpisode(episode);
      recorded = true;
    };
    return {
      reset(options) {
        record();
        return after(inner.reset(options), begun => {
          const { seed, member = 0, mode = 'train' } = options;
          const observation = textOf(begun.observation);
          episode = { env: definition.name, config, seed, member, mode, actions: [], observation, steps: [] };
          recorded = false;
          return begun;
        });
      },
      step: action =>
        after(inner.step(action), (result): StepResult => {
          if (!episode || recorded) return result;
          const { observation, ...outcome } = result;
          episode.actions.push(action);
          episode.steps.push({ observation: textOf(observation), ...outcome });
          if (!result.terminated && !result.truncated) return result;
          const episode_return = episode.steps.reduce((sum, { reward }) => sum + reward, 0);
          record();
          return { ...result, info: { ...result.info, episode_return, episode_length: episode.steps.length } };
        }),
      close() {
        record();
        return inner.close?.();
      },
    };
  });
}

/** Returns a listener that appends each episode to a file as one line of JSON. */
export function appendTo(file: string): (episode: RecordedEpisode) => void {
  return episode => appendFileSync(file, `${JSON.stringify(episode)}\n`);
}
