// The state of an environment cell apart from its process: the code of each tag, the live episodes with what rebuilds
// them, the lost episodes, and the episodes moved to another cell. An episode is a pure function of (code, seed,
// member, actions). Independent of the process itself.
import type {
  EnvironmentFailure,
  EnvironmentSpec,
  EpisodeActions,
  EpisodeReset,
  EpisodeState,
  EpisodeStep,
  LoadedEnvironment,
} from '../../protocol/environment-link';
import { appendAll } from '../../common/lists';
import type { ProcessEnd } from './process-handle';

/** A cell's state for one tag. */
export interface TagState {
  spec: EnvironmentSpec;
  builds: [string, EnvironmentSpec][];
  live: [string, LiveEpisode][];
  lost: [string, LostEpisode][];
}

export interface LostEpisode {
  tag: string;
  failure: EnvironmentFailure;
}

/** The inputs that rebuild a live episode. */
export interface LiveEpisode {
  reset: EpisodeReset;
  actions: (number | string)[];
  version: string;
}

/** Code to load, and the live episodes that began on it. */
export interface Replay {
  environments: EnvironmentSpec[];
  episodes: LiveEpisode[];
}

export class HeldEpisodes {
  readonly specs = new Map<string, EnvironmentSpec>();
  /** Code by tag and version, in load order: the current code, and code that live episodes began on. */
  private readonly builds = new Map<string, EnvironmentSpec>();
  private readonly live = new Map<string, LiveEpisode>();
  /** Episodes that could not be rebuilt after a restart. */
  private readonly lost = new Map<string, LostEpisode>();
  /** Tags of the episodes that were moved to another cell. */
  private readonly moved = new Map<string, string>();

  constructor(held?: TagState) {
    if (!held) return;
    this.specs.set(held.spec.tag, held.spec);
    for (const [build, spec] of held.builds) this.builds.set(build, spec);
    for (const [episode, live] of held.live) this.live.set(episode, live);
    for (const [episode, failure] of held.lost) this.lost.set(episode, failure);
  }

  get tags(): string[] {
    return [...this.specs.keys()];
  }

  /** Stores the code of a tag, so that a restart loads the same code whatever the file contains then. */
  keep(spec: EnvironmentSpec, { version, bundle, files }: LoadedEnvironment): EnvironmentSpec {
    const kept = { ...spec, built: { bundle, files } };
    const before = this.specs.get(spec.tag); // episodes may be about to begin on it
    this.specs.set(spec.tag, kept);
    const played = new Set([...this.live.values()].map(buildOf));
    for (const [build, known] of this.builds)
      if (known.tag === spec.tag && known !== before && !played.has(build)) this.builds.delete(build);
    this.builds.set(buildOf({ reset: spec, version }), kept);
    return kept;
  }

  /** Removes a tag and returns its state. */
  release(tag: string): TagState {
    const spec = this.specs.get(tag)!;
    const take = <T>(from: Map<string, T>, concerns: (value: T, key: string) => boolean): [string, T][] => {
      const found = [...from].filter(([key, value]) => concerns(value, key));
      for (const [key] of found) from.delete(key);
      return found;
    };
    this.specs.delete(tag);
    const builds = take(this.builds, ({ tag: own }) => own === tag);
    const live = take(this.live, ({ reset }) => reset.tag === tag);
    for (const [episode] of live) this.moved.set(episode, tag);
    const lost = take(this.lost, ({ tag: own }) => own === tag);
    for (const [episode] of lost) this.moved.set(episode, tag);
    return { spec, builds, live, lost };
  }

  /** Records how an episode began. */
  begun(reset: EpisodeReset, state: EpisodeState): EpisodeState {
    const { episode, version, error } = state;
    this.lost.delete(episode);
    if (error) this.live.delete(episode);
    else this.live.set(episode, { reset, actions: [], version });
    return state;
  }

  /**
   * Records a step of an episode. A failure by which the episode was lost meanwhile takes precedence over the step's
   * own.
   */
  stepped(step: EpisodeStep): EpisodeStep {
    const live = this.live.get(step.episode);
    if (live)
      appendAll(
        live.actions,
        step.outcomes.map(({ action }) => action),
      );
    const error = this.lost.get(step.episode)?.failure ?? step.error;
    if (error) this.live.delete(step.episode);
    return error ? { ...step, error } : step;
  }

  close(episode: string): void {
    this.live.delete(episode);
    this.lost.delete(episode);
  }

  tagOf(item: { episode: string } | EpisodeReset): string | undefined {
    return 'tag' in item ? item.tag : this.live.get(item.episode)?.reset.tag;
  }

  /** The tag of an episode that was moved to another cell, else undefined. */
  newTagOf(episode: string): string | undefined {
    return this.moved.get(episode);
  }

  /** The current live episodes of a tag. */
  liveOf(tag: string): [string, LiveEpisode][] {
    return [...this.live].filter(([, { reset }]) => reset.tag === tag);
  }

  /**
   * Returns what a new process must load and replay, in order: first code from before an edit, with the live episodes
   * that began on it; last the current code with the other episodes.
   */
  replays(): Replay[] {
    const present = [...this.specs.values()];
    const live = [...this.live.values()];
    const past = [...this.builds].flatMap(([build, spec]) => {
      const episodes = present.includes(spec) ? [] : live.filter(episode => buildOf(episode) === build);
      return episodes.length > 0 ? [{ environments: [spec], episodes }] : [];
    });
    const others = live.filter(episode => !past.some(({ episodes }) => episodes.includes(episode)));
    return [...past, { environments: present, episodes: others }];
  }

  /** Records the result of replaying episodes; those with an error or another version are lost. */
  replayed(steps: readonly EpisodeStep[]): void {
    for (const { episode, version, error } of steps) {
      const lived = this.live.get(episode);
      if (!lived) continue;
      if (error) this.lose(lived.reset, error);
      else if (version !== lived.version) this.lose(lived.reset, 'was edited before its process died');
    }
  }

  /** Marks an episode as lost; `why` is a failure, or a predicate whose subject is its environment. */
  lose({ episode, tag, seed, member }: EpisodeReset, why: string | EnvironmentFailure): void {
    const message = `environment ${tag} ${String(why)}, so the episode at seed ${seed}, member ${member} is lost: no action is needed, later episodes are unaffected`;
    this.live.delete(episode);
    this.lost.set(episode, { tag, failure: typeof why === 'string' ? { kind: 'died', message } : why });
  }

  /** The failure of an episode whose request, sent alone, ended the process. */
  endedBy(
    method: 'reset' | 'step',
    item: { episode: string } | EpisodeReset | EpisodeActions,
    end: ProcessEnd,
  ): EnvironmentFailure {
    const live = this.live.get(item.episode);
    const reset = 'tag' in item ? item : live?.reset;
    const actions = 'tag' in item ? [] : live?.actions;
    const given = 'actions' in item ? item.actions.map(action => JSON.stringify(action).slice(0, 80)).join(', ') : '';
    const tag = reset?.tag ?? '';
    const where = reset ? ` at seed ${reset.seed}, member ${reset.member} after ${actions?.length ?? 0} actions` : '';
    return this.failure(tag, ` in ${method}(${given})${where}`, end);
  }

  /** The failure for the end of a process, for the tag at fault. */
  failure(tag: string, where: string, { how, offence }: ProcessEnd): EnvironmentFailure {
    const source = this.specs.get(tag)?.source;
    const { what, remedy } = offence ?? {
      what: `ended its process (${how})`,
      remedy: 'throw an error instead, or look for native code that fails',
    };
    const message = `environment ${tag} (${source}) ${what}${where}: ${remedy}`;
    return { kind: offence?.kind === 'silent' ? 'timed_out' : 'died', message, at: source };
  }
}

/** Key of the code that an episode runs. */
const buildOf = ({ reset, version }: { reset: { tag: string }; version: string }): string => `${reset.tag} ${version}`;
