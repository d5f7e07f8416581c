// The environment state manager (RAGEN's es_manager): lays out a batch of episodes, resets their environments, and maps
// parsed responses to actions. It also stores the state, rewards and history of each episode.
// The environment sets `terminated` and `truncated` (Gymnasium). If an episode reaches max_actions_per_traj,
// `terminated` and `truncated` are set, as in RAGEN. A failed environment or a full context sets `truncated`; reaching
// max_turn sets neither. Success is the value of `success` in the environment's last info.
import type { StateForm } from '../../../envs/api/state-forms';
import type { ComponentValues } from '../../../envs/api/rewards';
import type { EnvironmentFailure, EpisodeState, EpisodeStep, LoadedEnvironment } from '../../protocol/environment-link';
import type { EpisodeTurn } from '../../run-data/episode';
import { mergedInfo } from '../../run-data/turn-info';
import type { MarkedPicture } from '../../common/picture-mark';
import { UserError } from '../../common/user-error';
import { PictureError } from '../../models/vision/picture';
import { eachState, type EnvironmentPool } from '../../environments/client/environment-pool';
import { episodeSlots, SeedCounter, type EnvGroups, type EpisodeSlot, type SeedState } from './group-layout';
import type { Judgement } from '../../run-data/judgement';
import type { ObservedPictures } from './observed-pictures';
import { rewardPlan, type RewardPlan } from '../rewards/reward-plan';
import { creditRoles, creditWaiting, type RoleState } from './role-credit';
import { answered, earnedBy, stepRequest } from './scored-turns';
import type { RewardSettings } from '../config/schema-rewards';
import type { DescribedState } from '../rewards/state-judge';
import { askedForm, recordedForm, type PromptFormat } from './prompt-format';
import type { ParsedResponse } from './turn-protocol';

/** Keys of `custom_envs.<tag>` that the manager reads. */
export interface TagSettings {
  max_actions_per_traj: number;
  prompt_format?: PromptFormat | null;
  rewards?: RewardSettings | null;
  /** Roles that models behind APIs play. */
  roles?: Readonly<Record<string, { model: string }>> | null;
}

export interface StateManagerOptions {
  mode: 'train' | 'val';
  /** The base seed, `seed.train` or `seed.val`. */
  seed: number;
  groups: EnvGroups;
  custom_envs: Record<string, TagSettings>;
  /**
   * Penalty, at most 0. It is added to the score once for each turn without a valid action or with an invalid action.
   */
  format_penalty: number;
  /** Receives the pictures of observations; without it, a run ends when an environment returns pictures. */
  pictures?: Pick<ObservedPictures, 'admit'>;
}

/** A finished turn without its token data, which the EpisodeContext stores. */
export type TurnHistory = Omit<EpisodeTurn, 'span'>;

/** An episode in progress. */
export interface EpisodeEntry extends EpisodeSlot {
  /** The id, such as `train-000012-g003-m05`. */
  id: string;
  environment: LoadedEnvironment;
  /** Version of the environment code that runs this episode. */
  version: string;
  max_actions_per_traj: number;
  /**
   * Action names by action id. The names are those that `reset` returned for this episode or, if `reset` returned none,
   * those that the environment declares. Undefined if actions have no names; any text is then an action.
   */
  actions?: Record<number, string>;
  /** The role whose turn is next; undefined in an environment without roles. */
  role?: string;
  /** What is known of each role, in the order of their declaration; undefined without roles. */
  roles?: Record<string, RoleState>;
  /** The newest observation. */
  state: string;
  /** Its pictures, in the order of its marks `<image>`. */
  pictures: readonly MarkedPicture[];
  /** True if the last turn had no valid action. */
  manager_invalid_action: boolean;
  terminated: boolean;
  truncated: boolean;
  success: boolean;
  context_full: boolean;
  /** Error message in one sentence if a prompt did not fit into the context; otherwise absent. */
  context_reason?: string;
  num_actions: number;
  penalty: number;
  history: TurnHistory[];
  error?: EnvironmentFailure;
  /** Form in which the environment is asked for its true state; undefined if answers describe no states. */
  stateForm?: StateForm;
  /** The newest true state; undefined without `stateForm`. */
  trueState?: string;
  /** Descriptions that judges are to score, by turn. */
  described?: { turn: number; state: DescribedState }[];
  /** The reward components of the tag; undefined if it has none. */
  rewards?: RewardPlan;
  /** Values of the components of the complete episode; set by `scoreEpisodes` and by judges. */
  components?: ComponentValues;
  /** Judgements of the complete episode, by component; undefined without judges. */
  judgements?: Record<string, Judgement[]>;
}

/** The model's response in one turn of an episode. */
export interface TurnInput {
  entry: EpisodeEntry;
  /** The model's text, including the generation prefix. */
  raw: string;
  response: ParsedResponse;
  /** Why the response ended. */
  finish: EpisodeTurn['finish'];
}

/** Receives episodes as soon as they are ready for the next turn. */
export type EntriesListener = (ready: EpisodeEntry[]) => void;

/** Whether the episode is terminated or truncated. */
export const isDone = ({ terminated, truncated }: EpisodeEntry): boolean => terminated || truncated;

export class EnvironmentStateManager {
  private readonly seeds: SeedCounter;

  constructor(
    private readonly pool: EnvironmentPool,
    private readonly options: StateManagerOptions,
  ) {
    this.seeds = new SeedCounter(options.mode, options.seed);
  }

  /** The seed counter, for checkpoints. */
  get state(): SeedState {
    return this.seeds.state;
  }

  restore(state: SeedState): void {
    this.seeds.restore(state);
  }

  /**
   * Creates the entries of all episodes of the next batch.
   * @param environments the loaded environment of each tag
   * @param seed overrides the seed of the first group
   * @param round number of the batch within its step, from 0
   * @param groups layout of the batch, by default the configured one
   */
  layOut(
    step: number,
    environments: readonly LoadedEnvironment[],
    seed?: number,
    round = 0,
    groups = this.options.groups,
  ): EpisodeEntry[] {
    const { mode, custom_envs } = this.options;
    const before = round * groups.env_groups;
    const byTag = new Map(environments.map(environment => [environment.tag, environment]));
    const plans = new Map(
      environments.map(each => [
        each.tag,
        rewardPlan(each, custom_envs[each.tag]?.rewards, custom_envs[each.tag]?.prompt_format),
      ]),
    );
    return episodeSlots(groups, this.seeds.next(groups.env_groups, seed)).map(first => {
      const slot = {
        ...first,
        group_id: first.group_id + before,
        env_id: first.env_id + before * groups.group_size,
      };
      const environment = byTag.get(slot.tag);
      if (!environment) throw new Error(`es_manager.${mode}: environment ${slot.tag} is not loaded`);
      const stateForm =
        askedForm(environment, custom_envs[slot.tag].prompt_format) ??
        (this.options.pictures ? recordedForm(environment) : undefined);
      return {
        ...slot,
        id: episodeId(mode, step, slot),
        environment,
        version: environment.version,
        max_actions_per_traj: custom_envs[slot.tag].max_actions_per_traj,
        actions: environment.actions,
        state: '',
        pictures: [],
        manager_invalid_action: false,
        terminated: false,
        truncated: false,
        success: false,
        context_full: false,
        num_actions: 0,
        penalty: 0,
        history: [],
        ...(environment.roles && { roles: startingRoles(environment.roles, custom_envs[slot.tag].roles) }),
        ...(stateForm && { stateForm }),
        ...(plans.get(slot.tag) && { rewards: plans.get(slot.tag) }),
      };
    });
  }

  /** Resets the environments of all entries. `onReady` receives each entry as soon as it is reset or has failed. */
  async reset(entries: readonly EpisodeEntry[], onReady?: EntriesListener): Promise<void> {
    const { mode } = this.options;
    const byId = new Map(entries.map(entry => [entry.id, entry]));
    const resets = entries.map(({ id, tag, seed, member, stateForm }) => ({
      ...{ episode: id, tag, seed, member, mode },
      ...(stateForm && { state_form: stateForm }),
    }));
    await this.each<EpisodeState>(
      report => this.pool.reset(resets, report),
      ({ episode }) => byId.get(episode)!,
      (states, shown) => {
        const ready = states.map(({ episode, observation, version, actions, role, true_state, error }, i) => {
          const entry = byId.get(episode)!;
          if (error) fail(entry, error);
          else {
            Object.assign(entry, { state: observation, version, ...(actions && { actions }), ...(role && { role }) });
            if (true_state !== undefined) entry.trueState = true_state;
            show(entry, shown[i]);
          }
          return entry;
        });
        onReady?.(ready);
      },
    );
  }

  /**
   * Calls `take` with each state as soon as it is ready and its pictures are stored.
   * @param of the episode of a state
   */
  private async each<State extends EpisodeState>(
    ask: (report: (ready: State[]) => void) => Promise<State[]>,
    of: (state: State) => EpisodeEntry,
    take: (ready: State[], shown: Shown[]) => void,
  ): Promise<void> {
    const admissions: Promise<void>[] = [];
    const admitted = async (states: State[]): Promise<void> =>
      take(states, await Promise.all(states.map(state => this.admit(state, of(state)))));
    await eachState<State>(ask, states => {
      const pictured = states.filter(({ images }) => images && images.length > 0);
      if (pictured.length === 0)
        return take(
          states,
          states.map(() => []),
        );
      const admission = admitted(states);
      admission.catch(() => undefined); // thrown below, after the whole batch has finished
      admissions.push(admission);
    });
    await Promise.all(admissions);
  }

  /** Stores the pictures of an observation. Returns them, or the environment's mistake in one sentence. */
  private async admit({ images = [], observation, error }: EpisodeState, entry: EpisodeEntry): Promise<Shown> {
    const { pictures } = this.options;
    if (error || images.length === 0) return [];
    if (!pictures) throw textOnly(entry);
    try {
      return await pictures.admit(observation, images);
    } catch (mistake) {
      if (!(mistake instanceof PictureError)) throw mistake;
      const { tag, seed, member, history } = entry;
      return `environment ${tag} returned an observation in turn ${history.length + 1} (seed ${seed}, member ${member}) that ${mistake.message}`;
    }
  }

  /**
   * Plays one turn in each of the given unfinished episodes. `onReady` receives each episode as soon as its turn is
   * over.
   */
  async step(turns: readonly TurnInput[], onReady?: EntriesListener): Promise<void> {
    const planned = turns.map(input => this.plan(input));
    const isActing = ({ actions, entry }: PlannedTurn): boolean =>
      actions.length > 0 || (entry.rewards?.scores.turn ?? false);
    const idle = planned.filter(plan => !isActing(plan));
    const acting = new Map(planned.filter(isActing).map(plan => [plan.entry.id, plan]));
    for (const plan of idle) finishTurn(plan, undefined);
    if (idle.length > 0) onReady?.(idle.map(({ entry }) => entry));
    if (acting.size === 0) return;
    const steps = Array.from(acting.values(), stepRequest);
    await this.each<EpisodeStep>(
      report => this.pool.step(steps, report),
      ({ episode }) => acting.get(episode)!.entry,
      (states, shown) => {
        states.forEach((step, i) => {
          const plan = acting.get(step.episode)!;
          finishTurn(plan, step);
          // Without an action, the state and its pictures are those of before, and the step contains no pictures.
          if (!step.error && step.outcomes.length > 0) show(plan.entry, shown[i]);
        });
        onReady?.(states.map(({ episode }) => acting.get(episode)!.entry));
      },
    );
  }

  /**
   * Calls the score functions for complete episodes. Does nothing for episodes that failed, that have no turn, or whose
   * environment has no such function.
   */
  async scoreEpisodes(entries: readonly EpisodeEntry[]): Promise<void> {
    const asked = entries.filter(
      ({ rewards, error, history }) => rewards?.scores.episode && !error && history.length > 0,
    );
    if (asked.length === 0) return;
    const requests = asked.map(entry => ({ episode: entry.id, actions: [], score: { episode: answered(entry) } }));
    const steps = await this.pool.step(requests);
    steps.forEach(({ components, error }, i) => {
      if (error) fail(asked[i], error);
      else asked[i].components = { ...asked[i].components, ...components };
    });
  }

  async close(entries: readonly EpisodeEntry[]): Promise<void> {
    await this.pool.closeEpisodes(entries.map(({ id }) => id));
  }

  /** Maps a response to actions and computes its format penalty. */
  private plan({ entry, raw, response, finish }: TurnInput): PlannedTurn {
    const valid = validActions(response.actions, entry.actions);
    const malformed = valid.length === 0 || valid.length !== response.actions.length || response.malformed === true;
    return {
      entry,
      raw,
      response,
      finish,
      actions: valid.slice(0, Math.min(entry.max_actions_per_traj - entry.num_actions, entry.roles ? 1 : Infinity)),
      format_right: response.format_right === true && !malformed,
      penalty: malformed && isOwnTurn(entry) ? this.options.format_penalty : 0,
    };
  }
}

/** The pictures of an observation, or the environment's mistake in one sentence. */
type Shown = readonly MarkedPicture[] | string;

interface PlannedTurn extends TurnInput {
  actions: (number | string)[];
  /** Whether the response follows its prompt format, and all its actions are valid. */
  format_right: boolean;
  penalty: number;
}

/**
 * Returns the valid actions of a response, in order. If actions have names, a valid action is one of these names in any
 * letter case, and the action's id is returned. If actions have no names, every text is valid and is returned as it is.
 */
export function validActions(parsed: readonly string[], lookup?: Record<number, string>): (number | string)[] {
  if (!lookup || Object.keys(lookup).length === 0) return [...parsed];
  const idByName = new Map(Object.entries(lookup).map(([id, name]) => [name.toLowerCase(), Number(id)]));
  return parsed.map(action => idByName.get(action.toLowerCase())).filter(id => id !== undefined);
}

/** Returns the id of an episode, such as `train-000012-g003-m05`. */
function episodeId(mode: 'train' | 'val', step: number, { group_id, member }: EpisodeSlot): string {
  return `${mode}-${String(step).padStart(6, '0')}-g${String(group_id).padStart(3, '0')}-m${String(member).padStart(2, '0')}`;
}

/** Records a turn in its episode. `step` is undefined if no action was executed. */
function finishTurn(
  { entry, raw, response, finish, actions, format_right, penalty }: PlannedTurn,
  step: EpisodeStep | undefined,
): void {
  const outcomes = step && !step.error ? step.outcomes : [];
  const info = mergedInfo(outcomes.map(outcome => outcome.info));
  if (actions.length === 0) info.manager_invalid_action = true;
  const { calls } = outcomes.at(-1) ?? {};
  const truth = entry.trueState !== undefined && {
    true_state: entry.trueState,
    true_next_state: step?.true_state ?? entry.trueState,
  };
  const { observation, prediction } = response;
  if (truth && format_right && !step?.error)
    for (const part of entry.rewards?.judgedParts ?? []) {
      const state = {
        part,
        text: response[part] ?? '',
        truth: truth[part === 'observation' ? 'true_state' : 'true_next_state'],
      };
      (entry.described ??= []).push({ turn: entry.history.length + 1, state });
    }
  entry.history.push({
    turn: entry.history.length + 1,
    ...(entry.role !== undefined && { role: entry.role }),
    state: entry.state,
    ...(entry.pictures.length > 0 && { pictures: entry.pictures.map(({ name }) => name) }),
    actions_left: entry.max_actions_per_traj - entry.num_actions,
    raw,
    thought: response.thought,
    answer: response.answer,
    parsed: response.actions,
    executed: (step?.error ? actions : outcomes.map(({ action }) => action)).map(
      action => entry.actions?.[Number(action)] ?? String(action),
    ),
    reward: outcomes.reduce((sum, { reward }) => sum + reward, 0),
    penalty,
    ...(entry.rewards &&
      !step?.error &&
      earnedBy(
        entry.rewards,
        { state: entry.state, thought: response.thought, format_right, observation, prediction, ...truth },
        step?.components,
      )),
    info,
    ...(calls && { calls }),
    ...truth,
    finish,
  });
  if (entry.roles) creditWaiting(entry.history.at(-1)!, entry.roles);
  entry.penalty += penalty;
  entry.manager_invalid_action = actions.length === 0;
  if (step?.error) fail(entry, step.error);
  if (!step || step.error) return;
  if (entry.roles) {
    creditRoles(
      entry.history,
      entry.roles,
      outcomes.map(outcome => outcome.roles ?? {}),
    );
    if (step.role !== undefined)
      Object.assign(entry, { role: step.role, ...(step.actions && { actions: step.actions }) });
  }
  entry.state = step.observation;
  if (step.true_state !== undefined) entry.trueState = step.true_state;
  entry.num_actions += outcomes.length;
  const last = outcomes.at(-1);
  if (last && (last.terminated || last.truncated)) {
    entry.terminated = last.terminated;
    entry.truncated = last.truncated;
    entry.success = Boolean(info.success);
  } else if (entry.num_actions >= entry.max_actions_per_traj) entry.terminated = entry.truncated = true;
}

const startingRoles = (
  roles: NonNullable<LoadedEnvironment['roles']>,
  players: TagSettings['roles'],
): Record<string, RoleState> =>
  Object.fromEntries(
    roles.map(({ name }) => {
      const player = players?.[name]?.model;
      return [name, { success: false, waiting: 0, ...(player !== undefined && { player }) }];
    }),
  );

/** Whether the policy, and no model behind an API, plays the next turn of an episode. */
export const isOwnTurn = ({ role, roles }: Pick<EpisodeEntry, 'role' | 'roles'>): boolean =>
  role === undefined || roles?.[role].player === undefined;

/** Fails an episode whose next turn was not played. */
export const failTurn = (entry: EpisodeEntry, message: string): void => fail(entry, { kind: 'player', message });

/** Sets the pictures of an episode's newest observation, or fails the episode. */
function show(entry: EpisodeEntry, shown: Shown): void {
  entry.pictures = typeof shown === 'string' ? [] : shown;
  if (typeof shown === 'string') fail(entry, { kind: 'bad_value', message: shown });
}

/** The error of an environment that returned pictures to a model that reads text only. */
const textOnly = ({ tag }: EpisodeEntry): UserError =>
  new UserError(
    `config: custom_envs.${tag} returns images, which the model cannot read: use a vision-language model, or configure text observations (sokoban: custom_envs.${tag}.env_config.render_mode=text)`,
  );

function fail(entry: EpisodeEntry, error: EnvironmentFailure): void {
  entry.error = error;
  entry.truncated = true;
}
