// One episode that a user plays: executes actions, undoes actions by a replay, restarts with a seed, runs the solver,
// and replays the actions on edited code. Invariant: the displayed episode is the result of (seed, actions) on the
// loaded code. If a replay fails, the session reports the error and keeps the previous episode.
import type { EnvironmentFailure, EnvironmentSpec, LoadedEnvironment } from '../../protocol/environment-link';
import type {
  PlayDifference,
  PlayDo,
  PlayedRole,
  PlayedStep,
  PlayReply,
  PlaySession,
  Shown,
} from '../../protocol/environment-tools';
import { UserError } from '../../common/user-error';
import type { EnvironmentProcess } from '../client/environment-process';
import { actionOf, nameOf, type ActionNames } from './named-actions';
import { startToolProcess } from './tool-process';
import { shownOf } from './transcripts';

/** Maximum number of steps when the solver is called again before every step. */
const mostSolved = 500;

interface Episode {
  loaded: LoadedEnvironment;
  seed: number;
  names: ActionNames;
  first: Shown;
  steps: PlayedStep[];
}

/** A failure in the environment's code, with its location. */
class CodeFailure extends UserError {
  constructor(readonly failure: EnvironmentFailure) {
    super(failure.message);
  }
}

export class Session {
  private episode: Episode | undefined;
  private loaded: LoadedEnvironment | undefined;
  private hint: string[] | null | undefined;
  private reloaded: PlaySession['reloaded'];
  private readonly id = 'played';

  private constructor(
    private readonly environments: EnvironmentProcess,
    private readonly spec: EnvironmentSpec,
    private seed: number,
  ) {}

  /** Starts a process for the session. The environment is not loaded until the first `reload`. */
  static async open(spec: EnvironmentSpec, seed: number): Promise<Session> {
    return new Session(await startToolProcess([spec]), spec, seed);
  }

  /**
   * Executes a request and returns the session's state. Errors of the player and of the environment are returned in the
   * reply and not thrown.
   */
  async answer(id: number, asked: PlayDo): Promise<PlayReply> {
    try {
      this.hint = undefined;
      this.reloaded = undefined;
      await this.perform(asked);
      return { id, session: this.state };
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      const at = error instanceof CodeFailure ? error.failure.at : undefined;
      return { id, session: this.state, error: { message: error.message, ...(at !== undefined && { at }) } };
    }
  }

  close(): Promise<void> {
    return this.environments.stop();
  }

  private get state(): PlaySession | undefined {
    const { episode } = this;
    if (!episode) return undefined;
    const { loaded, seed, names, first, steps } = episode;
    return {
      environment: loaded.name,
      source: loaded.source,
      version: loaded.version,
      files: loaded.files.filter(file => !/[\\/]node_modules[\\/]/.test(file)),
      config: loaded.config,
      seed,
      instruction: loaded.instruction,
      legend: loaded.legend,
      actions: Object.entries(names ?? {}).map(([id, name]) => ({ id: Number(id), name })),
      has_solver: loaded.has_solver,
      first,
      steps,
      total: steps.reduce((sum, { reward }) => sum + reward, 0),
      ...(loaded.roles && { roles: playedRoles(loaded.roles, steps) }),
      over: isOver(steps),
      ...(this.hint !== undefined && { hint: this.hint }),
      ...(this.reloaded && { reloaded: this.reloaded }),
    };
  }

  private async perform(asked: PlayDo): Promise<void> {
    switch (asked.do) {
      case 'act':
        return this.act(asked.action);
      case 'undo':
        return this.undo();
      case 'restart': {
        this.seed = asked.seed ?? this.seed;
        this.episode = await this.replay([]);
        return;
      }
      case 'hint': {
        const { names } = this.current();
        this.hint = (await this.solution())?.map(action => nameOf(action, names)) ?? null;
        return;
      }
      case 'solve':
        return this.solve();
      case 'reload':
        return this.reload();
    }
  }

  private async act(given: number | string): Promise<void> {
    const episode = this.current();
    if (isOver(episode.steps))
      throw new UserError('the episode is over: undo the last action, or start another episode');
    const action = actionOf(given, episode.names);
    try {
      episode.steps.push(await this.step(episode, action));
    } catch (error) {
      // The failed step has ended the episode in the process. A replay restores the episode.
      if (error instanceof CodeFailure) this.episode = await this.replay(actionsOf(episode));
      throw error;
    }
  }

  private async undo(): Promise<void> {
    const episode = this.current();
    if (episode.steps.length === 0) throw new UserError('there is no action to undo: the episode has just begun');
    this.episode = await this.replay(actionsOf(episode).slice(0, -1));
  }

  /**
   * Plays the solver's plan. If random transitions make the plan fail, restores the state before the plan by a replay,
   * and then calls the solver again before every step.
   */
  private async solve(): Promise<void> {
    const from = actionsOf(this.current());
    const plan = await this.solution();
    if (!plan || plan.length === 0)
      throw new UserError('the solver cannot solve the current state: undo actions, or start another episode');
    for (const action of plan) if (!isOver(this.current().steps)) await this.act(action);
    if (isSolved(this.current().steps)) return;
    const asItWas = this.current();
    this.episode = await this.replay(from);
    for (let i = 0; i < mostSolved && !isOver(this.current().steps); i++) {
      const [next] = (await this.solution()) ?? [];
      if (next === undefined) break;
      await this.act(next);
    }
    if (!isSolved(this.current().steps)) this.episode = await this.replay(actionsOf(asItWas));
  }

  /** Returns the solver's actions from the current state; undefined if it finds no solution. */
  private async solution(): Promise<(number | string)[] | undefined> {
    const { loaded } = this.current();
    if (!loaded.has_solver) throw new UserError(`${loaded.name} has no solver: add a solve method to the environment`);
    const [{ actions }] = await this.environments.solve([this.id]);
    return actions;
  }

  private async reload(): Promise<void> {
    const { environments, error } = await this.environments.load([this.spec]);
    if (error) throw new CodeFailure(error);
    [this.loaded] = environments;
    const before = this.episode;
    const after = await this.replay(before ? actionsOf(before) : []);
    if (before) this.reloaded = { from: before.loaded.version, differences: differencesOf(before, after) };
    this.episode = after;
  }

  /** Replays actions on the loaded code; stops when the episode ends. */
  private async replay(actions: readonly (number | string)[]): Promise<Episode> {
    const { loaded, seed } = this;
    if (!loaded) throw new UserError('the environment is not loaded: fix its error, then reload');
    const [state] = await this.environments.reset([
      { episode: this.id, tag: this.spec.tag, seed, member: 0, mode: 'train' },
    ]);
    if (state.error) throw new CodeFailure(state.error);
    const names = state.actions ?? loaded.actions;
    const episode: Episode = { loaded, seed, names, first: shownOf(state), steps: [] };
    for (const action of actions) {
      if (isOver(episode.steps)) break;
      episode.steps.push(await this.step(episode, action));
    }
    return episode;
  }

  /** Executes an action. With roles, the episode then has the legal actions of the next turn. */
  private async step(episode: Episode, action: number | string): Promise<PlayedStep> {
    const { names } = episode;
    const [state] = await this.environments.step([{ episode: this.id, actions: [action] }]);
    if (state.error) throw new CodeFailure(state.error);
    const [{ reward, terminated, truncated, info, roles }] = state.outcomes;
    const { role: acted } = episode.steps.at(-1) ?? episode.first;
    if (state.role !== undefined) episode.names = state.actions ?? names;
    return {
      ...{ action, name: nameOf(action, names), ...shownOf(state), reward, terminated, truncated, info },
      ...(acted !== undefined && { acted, earned: earnedBy(acted, reward, roles) }),
    };
  }

  private current(): Episode {
    if (!this.episode) throw new UserError('the environment is not loaded: fix its error, then reload');
    return this.episode;
  }
}

/** Returns what each role earned by a step: the acting role its reward, and each role what the step gave it beside. */
function earnedBy(
  acted: string,
  reward: number,
  outcomes: Readonly<Record<string, { reward?: number }>> = {},
): Record<string, number> {
  const earned: Record<string, number> = { [acted]: reward };
  for (const [role, { reward: more }] of Object.entries(outcomes))
    if (more !== undefined) earned[role] = (earned[role] ?? 0) + more;
  return earned;
}

const playedRoles = (roles: NonNullable<LoadedEnvironment['roles']>, steps: readonly PlayedStep[]): PlayedRole[] =>
  roles.map(role => ({ ...role, total: steps.reduce((sum, { earned }) => sum + (earned?.[role.name] ?? 0), 0) }));

const actionsOf = ({ steps }: Episode) => steps.map(({ action }) => action);
const isOver = (steps: readonly PlayedStep[]) => steps.at(-1)?.terminated === true || steps.at(-1)?.truncated === true;

/**
 * Whether the episode ended with success. If the info does not contain `success`, the episode is regarded as successful
 * if its last reward is positive.
 */
function isSolved(steps: readonly PlayedStep[]): boolean {
  const last = steps.at(-1);
  if (!last || !isOver(steps)) return false;
  const said = last.info['success'];
  return typeof said === 'boolean' ? said : last.reward > 0;
}

/**
 * Returns the differences between the episode on the old code and the same episode on the new code, in the order of
 * steps.
 */
function differencesOf(before: Episode, after: Episode): PlayDifference[] {
  const differences: PlayDifference[] = [];
  const compare = (step: number, what: PlayDifference['what'], one: string, other: string) => {
    if (one !== other) differences.push({ step, what, before: one, after: other });
  };
  const shown = (step: number, one: Shown, other: Shown) => {
    compare(step, 'observation', one.observation, other.observation);
    const images = ({ images = [] }: Shown) => images.map(image => `${image.length} ${image}`).join(' ');
    if (images(one) !== images(other)) {
      const count = ({ images = [] }: Shown) => `${images.length} image${images.length === 1 ? '' : 's'}`;
      differences.push({ step, what: 'images', before: count(one), after: count(other) });
    }
  };
  shown(0, before.first, after.first);
  before.steps.forEach((one, i) => {
    const other = after.steps.at(i);
    const step = i + 1;
    if (!other) return void differences.push({ step, what: 'missing', before: one.name, after: 'the episode is over' });
    shown(step, one, other);
    compare(step, 'reward', String(one.reward), String(other.reward));
    compare(step, 'end', endOf(one), endOf(other));
    compare(step, 'info', JSON.stringify(one.info), JSON.stringify(other.info));
  });
  return differences;
}

const endOf = ({ terminated, truncated }: PlayedStep) =>
  [terminated && 'terminated', truncated && 'truncated'].filter(Boolean).join(' and ') || 'continues';
