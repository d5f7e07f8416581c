// Notes each episode (Gymnasium's RecordEpisodeStatistics and what can be replayed): the last info tells `episode_return` and
// `episode_length`, which a run averages into its metrics, and a listener is given the whole episode.
import { appendFileSync } from 'node:fs';
import type { z } from 'zod';
import type { Action, EnvironmentDefinition, Info, StepResult } from '../environment';
import { after, textOf, wrap } from './wrap';

/** An episode as plain data; images are left out. With `env`, `config`, `seed` and `actions` it can be played again. */
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
 * @param onEpisode is given each episode once: when it ends, or when it is left (closed or reset) after at least one step. It only
 *   listens; what it throws ends the episode.
 */
export function withRecord<Schema extends z.ZodType>(
  definition: EnvironmentDefinition<Schema>,
  onEpisode: (episode: RecordedEpisode) => void = () => undefined,
): EnvironmentDefinition<Schema> {
  return wrap(definition, (inner, config) => {
    let episode: RecordedEpisode | undefined;
    let told = false;
    const tell = () => {
      if (episode && !told && episode.steps.length > 0) onEpisode(episode);
      told = true;
    };
    return {
      reset(options) {
        tell();
        return after(inner.reset(options), begun => {
          const { seed, member = 0, mode = 'train' } = options;
          const observation = textOf(begun.observation);
          episode = { env: definition.name, config, seed, member, mode, actions: [], observation, steps: [] };
          told = false;
          return begun;
        });
      },
      step: action =>
        after(inner.step(action), (result): StepResult => {
          if (!episode || told) return result;
          const { observation, ...outcome } = result;
          episode.actions.push(action);
          episode.steps.push({ observation: textOf(observation), ...outcome });
          if (!result.terminated && !result.truncated) return result;
          const episode_return = episode.steps.reduce((sum, { reward }) => sum + reward, 0);
          tell();
          return { ...result, info: { ...result.info, episode_return, episode_length: episode.steps.length } };
        }),
      close() {
        tell();
        return inner.close?.();
      },
    };
  });
}

/** A listener that appends each episode to a file as a line of JSON. */
export function appendTo(file: string): (episode: RecordedEpisode) => void {
  return episode => appendFileSync(file, `${JSON.stringify(episode)}\n`);
}
