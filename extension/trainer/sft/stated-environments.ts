// Environments whose true states a demonstrator reads. A demonstrator cannot read a picture, so each reset and each step
// also asks for the true state (`Environment.state`) as positions. The trained model sees only the picture.
import type { EnvironmentPool } from '../../environments/client/environment-pool';
import type { EpisodeActions, EpisodeReset, EpisodeState, EpisodeStep } from '../../protocol/environment-link';
import { isRecord, jsonOrNothing } from '../../common/json';
import { cellText, type Cell } from './board-cells';

/** Labels of the positions in a text state, by their names in a true state. */
const labels: Readonly<Record<string, string>> = { player: 'Player', goal: 'Goal', box: 'Boxes', target: 'Targets' };

export class StatedEnvironments implements EnvironmentPool {
  private readonly states = new Map<string, string>();

  /** @param pool environments that declare the form `structured` of their true states */
  constructor(private readonly pool: EnvironmentPool) {}

  /**
   * Returns the newest true state of an episode, as a text state lists it, such as `Player: (2, 0)`; undefined if the
   * environment does not state it.
   */
  stateOf(episode: string): string | undefined {
    const state = this.states.get(episode);
    return state === undefined ? undefined : positionLines(state);
  }

  async reset(episodes: EpisodeReset[], onStates?: (ready: EpisodeState[]) => void): Promise<EpisodeState[]> {
    return this.kept(await this.pool.reset(stated(episodes), ready => onStates?.(this.kept(ready))));
  }

  async step(episodes: EpisodeActions[], onSteps?: (ready: EpisodeStep[]) => void): Promise<EpisodeStep[]> {
    return this.kept(await this.pool.step(stated(episodes), ready => onSteps?.(this.kept(ready))));
  }

  async closeEpisodes(episodes: string[]): Promise<void> {
    for (const episode of episodes) this.states.delete(episode);
    await this.pool.closeEpisodes(episodes);
  }

  private kept<State extends EpisodeState>(states: State[]): State[] {
    for (const { episode, true_state } of states) if (true_state !== undefined) this.states.set(episode, true_state);
    return states;
  }
}

const stated = <Request extends EpisodeReset | EpisodeActions>(requests: readonly Request[]): Request[] =>
  requests.map(request => ({ ...request, state_form: 'structured' }));

/**
 * Returns a line for each kind of thing in a true state, such as `Boxes: (1, 2), (3, 4)`. Left out is what has no label
 * or is not a position.
 */
export function positionLines(structured: string): string {
  const things = jsonOrNothing(structured);
  if (!isRecord(things)) return '';
  return Object.entries(things)
    .filter(([name]) => Object.hasOwn(labels, name))
    .map(([name, at]) => ({ label: labels[name], cells: cellsOf(at) }))
    .filter(({ cells }) => cells.length > 0)
    .map(({ label, cells }) => `${label}: ${cells.map(cellText).join(', ')}\n`)
    .join('');
}

const isCell = (at: unknown): at is Cell => Array.isArray(at) && at.length === 2 && at.every(Number.isInteger);

/** Returns the cells of one position or a list of positions; none of anything else. */
const cellsOf = (at: unknown): Cell[] => (isCell(at) ? [at] : Array.isArray(at) ? at.filter(isCell) : []);
