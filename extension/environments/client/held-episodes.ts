// The data from which an environment cell rebuilds its process: the code of each tag, and the history of each live
// episode. The history includes the version of the code at the episode's start. The data also include the failed
// episodes, and the tag of each episode that was moved to another cell.
import type {
  EnvironmentFailure,
  EnvironmentSpec,
  EpisodeActions,
  EpisodeReset,
  EpisodeState,
  EpisodeStep,
  LoadedEnvironment,
} from '../../protocol/environment-link';
import { EpisodeHistory, type EpisodeRecord } from '../supervision/episode-history';
import type { ProcessEnd } from './process-handle';

/** The history of an episode. `note` is the version of the code with which the episode started. */
export type HeldEpisode = EpisodeRecord<EpisodeReset, string>;

/** A cell's state for one tag. */
export interface TagState {
  spec: EnvironmentSpec;
  builds: [string, EnvironmentSpec][];
  episodes: HeldEpisode[];
}

/** Code to load into a new process, and the live episodes that started with this code. */
export interface CodeReplay {
  environments: EnvironmentSpec[];
  episodes: string[];
}

export class HeldEpisodes {
  readonly specs = new Map<string, EnvironmentSpec>();
  readonly history: EpisodeHistory<EpisodeReset, string>;
  /**
   * Code by tag and version, in the order of loading. Contains each tag's current code, and the older code with which
   * live episodes started.
   */
  private readonly builds = new Map<string, EnvironmentSpec>();
  /** Tag of each episode that was moved to another cell, by episode id. */
  private readonly moved = new Map<string, string>();

  constructor(held?: TagState) {
    this.history = new EpisodeHistory(held?.episodes);
    if (!held) return;
    this.specs.set(held.spec.tag, held.spec);
    for (const [build, spec] of held.builds) this.builds.set(build, spec);
  }

  get tags(): string[] {
    return [...this.specs.keys()];
  }

  /** Stores the code that a tag has loaded. A new process loads this code, even if the file has changed. */
  keep(spec: EnvironmentSpec, { version, bundle, files }: LoadedEnvironment): EnvironmentSpec {
    const kept = { ...spec, built: { bundle, files } };
    const before = this.specs.get(spec.tag); // not deleted below: pending resets may start episodes with it
    this.specs.set(spec.tag, kept);
    const played = new Set(this.history.live().map(buildOf));
    for (const [build, known] of this.builds)
      if (known.tag === spec.tag && known !== before && !played.has(build)) this.builds.delete(build);
    this.builds.set(buildOf({ start: spec, note: version }), kept);
    return kept;
  }

  /** Removes a tag with its code and episodes, and returns the removed state. */
  release(tag: string): TagState {
    const spec = this.specs.get(tag)!;
    this.specs.delete(tag);
    const builds = [...this.builds].filter(([, { tag: own }]) => own === tag);
    for (const [build] of builds) this.builds.delete(build);
    const episodes = this.history.release(start => start.tag === tag);
    for (const { start } of episodes) this.moved.set(start.episode, tag);
    return { spec, builds, episodes };
  }

  /**
   * Records the result of a reset. If the reset succeeded, the episode is recorded as started. If the reset failed, the
   * episode is removed from the history.
   */
  begun(reset: EpisodeReset, state: EpisodeState): EpisodeState {
    if (state.error) this.history.close(state.episode);
    else this.history.begun(reset, state.version);
    return state;
  }

  /**
   * Records the result of a step. If the episode has failed in the meantime, for example because its process was
   * replaced, the returned step contains this failure instead of the step's own error.
   */
  stepped(step: EpisodeStep): EpisodeStep {
    const lost = this.history.get(step.episode)?.failure;
    if (lost) return { ...step, error: lost };
    this.history.acted(step.episode, step.outcomes);
    if (step.error) this.history.close(step.episode);
    return step;
  }

  tagOf(episode: string): string | undefined {
    return this.history.get(episode)?.start.tag;
  }

  /** Returns the tag of an episode that was moved to another cell; undefined for any other episode. */
  newTagOf(episode: string): string | undefined {
    return this.moved.get(episode);
  }

  /**
   * Returns which code a new process must load, and which episodes the process must replay with each piece of code.
   * Older code comes first: each older version with the live episodes that started with it. The current code comes
   * last, with all other live episodes.
   */
  replays(): CodeReplay[] {
    const present = [...this.specs.values()];
    const live = this.history.live();
    const past = [...this.builds].flatMap(([build, spec]) => {
      const episodes = present.includes(spec) ? [] : live.filter(episode => buildOf(episode) === build);
      return episodes.length > 0 ? [{ environments: [spec], episodes: episodes.map(nameOf) }] : [];
    });
    const others = live.map(nameOf).filter(episode => !past.some(({ episodes }) => episodes.includes(episode)));
    return [...past, { environments: present, episodes: others }];
  }

  /**
   * Records the result of replaying episodes. Episodes fail if the replay returned an error or ran another version of
   * the code.
   */
  replayed(steps: readonly EpisodeStep[]): void {
    for (const { episode, version, error } of steps) {
      const record = this.history.get(episode);
      if (!record || record.failure) continue;
      if (error) this.history.fail(episode, error);
      else if (version !== record.note) this.lose(episode, 'was edited before its process died');
    }
  }

  /**
   * Marks an episode as failed. In the message, `why` follows the environment's name: 'was edited before its process
   * died'.
   */
  lose(episode: string, why: string): void {
    const { tag, seed, member } = this.history.get(episode)!.start;
    const message = `environment ${tag} ${why}, so the episode at seed ${seed}, member ${member} is lost; later episodes are unaffected, so no action is needed`;
    this.history.fail(episode, { kind: 'died', message });
  }

  /**
   * Returns the failure of an episode whose reset or step has ended the process. No other request was pending, so this
   * request is the cause.
   */
  endedBy(method: 'reset' | 'step', item: EpisodeReset | EpisodeActions, end: ProcessEnd): EnvironmentFailure {
    const record = this.history.get(item.episode);
    const reset = 'tag' in item ? item : record?.start;
    const actions = 'tag' in item ? [] : record?.actions;
    const given = 'actions' in item ? item.actions.map(action => JSON.stringify(action).slice(0, 80)).join(', ') : '';
    const tag = reset?.tag ?? '';
    const where = reset ? ` at seed ${reset.seed}, member ${reset.member} after ${actions?.length ?? 0} actions` : '';
    return this.failure(tag, ` in ${method}(${given})${where}`, end);
  }

  /** Returns the failure that is reported after a process has ended because of the environment `tag`. */
  failure(tag: string, where: string, { how, offence }: ProcessEnd): EnvironmentFailure {
    const source = this.specs.get(tag)?.source;
    const { what, remedy } = offence ?? {
      what: `ended its process (${how})`,
      remedy: 'throw an error instead of ending the process, or look for native code that fails',
    };
    const message = `environment ${tag} (${source}) ${what}${where}: ${remedy}`;
    return { kind: offence?.kind === 'silent' ? 'timed_out' : 'died', message, at: source };
  }
}

/** Returns the key under which `builds` holds the code that the episode runs. */
const buildOf = ({ start, note }: { start: { tag: string }; note: string }): string => `${start.tag} ${note}`;

const nameOf = ({ start }: HeldEpisode): string => start.episode;
