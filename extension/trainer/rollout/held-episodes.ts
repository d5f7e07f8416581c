// What an environment cell holds besides its process: the code of each tag, the live episodes with what rebuilds them, those that were lost, and
// the ones that were moved to another cell. An episode is a pure function of (code, seed, member, actions). Knows no process.
import type {
  EnvironmentFailure,
  EnvironmentSpec,
  EpisodeActions,
  EpisodeReset,
  EpisodeState,
  EpisodeStep,
  LoadedEnvironment,
} from '../../protocol/environment-link';
import { appendAll } from '../../protocol/lists';
import type { ProcessEnd } from './process-life';

/** What a cell holds of one tag. */
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

/** What is needed to rebuild a live episode. */
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
  /** By tag and version, in the order of their loads: what is run now, and what live episodes began on. */
  private readonly builds = new Map<string, EnvironmentSpec>();
  private readonly live = new Map<string, LiveEpisode>();
  /** Episodes that did not survive a restart. */
  private readonly lost = new Map<string, LostEpisode>();
  /** Tags of episodes that were moved to another cell. */
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

  /** Remembers what a tag runs: the same code is loaded again after a death, whatever the file holds then. */
  keep(spec: EnvironmentSpec, { version, bundle, files }: LoadedEnvironment): EnvironmentSpec {
    const kept = { ...spec, built: { bundle, files } };
    const before = this.specs.get(spec.tag); // of which episodes may be beginning
    this.specs.set(spec.tag, kept);
    const played = new Set([...this.live.values()].map(buildOf));
    for (const [build, known] of this.builds)
      if (known.tag === spec.tag && known !== before && !played.has(build)) this.builds.delete(build);
    this.builds.set(buildOf({ reset: spec, version }), kept);
    return kept;
  }

  /** Gives up a tag with all that is held of it. */
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

  /** Takes up how an episode began. */
  begun(reset: EpisodeReset, state: EpisodeState): EpisodeState {
    const { episode, version, error } = state;
    this.lost.delete(episode);
    if (error) this.live.delete(episode);
    else this.live.set(episode, { reset, actions: [], version });
    return state;
  }

  /** Takes up what an episode did; the failure by which it was lost meanwhile comes before its own. */
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

  /** The tag of an episode that was moved to another cell. */
  movedTo(episode: string): string | undefined {
    return this.moved.get(episode);
  }

  /** The live episodes of a tag, as they are now. */
  liveOf(tag: string): [string, LiveEpisode][] {
    return [...this.live].filter(([, { reset }]) => reset.tag === tag);
  }

  /** What a new process has to load and play again, in this order: the code that live episodes began on before an edit comes first. */
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

  /** Takes up how episodes came back that were played again. */
  replayed(steps: readonly EpisodeStep[]): void {
    for (const { episode, version, error } of steps) {
      const lived = this.live.get(episode);
      if (!lived) continue;
      if (error) this.lose(lived.reset, error);
      else if (version !== lived.version) this.lose(lived.reset, 'changed and then its process died');
    }
  }

  /** Gives up an episode; `why` is a failure, or a predicate of its environment. */
  lose({ episode, tag, seed, member }: EpisodeReset, why: string | EnvironmentFailure): void {
    const message = `environment ${tag} ${String(why)}, so the episode at seed ${seed}, member ${member} is lost: nothing is to be done, the next episodes go on`;
    this.live.delete(episode);
    this.lost.set(episode, { tag, failure: typeof why === 'string' ? { kind: 'died', message } : why });
  }

  /** Why an episode failed over whose request the process died when there was nothing else in hand. */
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

  /** The failure that the end of a process amounts to, for a tag that is to blame. */
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

/** The code that an episode runs. */
const buildOf = ({ reset, version }: { reset: { tag: string }; version: string }): string => `${reset.tag} ${version}`;
