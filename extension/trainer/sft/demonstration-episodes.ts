// Creates demonstrations: successful episodes in which an environment's solver chose the actions. The first level has
// the seed `seed`; each further level has the next seed. A level is skipped if it has no solution, or if its solution
// needs more turns than an episode permits. The solver plans again in each turn, because an action on slippery ice may
// have an unplanned result. In an environment with roles, the solver plays every role: the first action of its plan
// belongs to the role whose turn is next, and each role's context is a sample of its own.
import type { LoadedEnvironment } from '../../protocol/environment-link';
import { appendAll } from '../../common/lists';
import { plainSyntax } from '../../models/tokenizer/tool-syntax';
import { UserError } from '../../common/user-error';
import type { RunConfig } from '../config/schema';
import { AgentProxy } from '../rollout/agent-proxy';
import { describedParts } from '../rollout/prompt-format';
import { tagProtocol, turnProtocol } from '../rollout/turn-protocol';
import type { EnvironmentPool } from '../../environments/client/environment-pool';
import type { ObservedPictures } from '../rollout/observed-pictures';
import type { EpisodeEntry } from '../rollout/environment-state-manager';
import type { PromptTokenizer } from '../rollout/prompt-tokenizer';
import { rowOf } from '../rollout/roles-context';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { SolverDemonstrator } from './solver-demonstrator';
import { StatedEnvironments } from './stated-environments';

/** Number of episodes that are played concurrently, as one batch. */
const batch = 64;
/** Maximum number of levels tried per requested demonstration. */
const triesEach = 20;

export interface DemonstrationTools {
  environments: EnvironmentPool & {
    solve(episodes: string[]): Promise<{ episode: string; actions?: (number | string)[] }[]>;
  };
  loaded: readonly LoadedEnvironment[];
  tokenizer: PromptTokenizer & { encode(text: string): number[]; readonly stopTokenIds: readonly number[] };
  /** Receives the pictures of observations; without it, environments with pictures are refused. */
  pictures?: ObservedPictures | undefined;
}

export interface DemonstrationsRequest {
  /**
   * Configuration of the turns and environments; `actor_rollout_ref.rollout.max_model_len` limits the tokens of an
   * episode.
   */
  config: RunConfig;
  tag: string;
  count: number;
  /** Seed of the first level. */
  seed: number;
  maxDepth: number;
  /** Aborts the work immediately; the abort reason is thrown. */
  signal?: AbortSignal;
  /** Receives the number of demonstrations so far, at most `count`. */
  onProgress?(solved: number): void;
}

/**
 * Returns `count` solved episodes of a tag, in seed order.
 * @throws UserError if the environment has no solver, or too few levels are solved
 */
export async function demonstrations(
  { config, tag, count, seed, maxDepth, signal, onProgress }: DemonstrationsRequest,
  tools: DemonstrationTools,
): Promise<RolloutEpisode[]> {
  const played = tools.loaded.find(environment => environment.tag === tag);
  const names = played?.actions;
  const agent_proxy = tagProtocol(turnProtocol(config), config.custom_envs[tag]);
  const { prompt_format, roles } = config.custom_envs[tag];
  if (Object.keys(roles ?? {}).length > 0)
    throw new UserError(
      `sft: custom_envs.${tag}.roles has roles that models behind APIs play, but the solver demonstrates all roles: set it to null`,
    );
  if (prompt_format && describedParts(prompt_format).length > 0)
    throw new UserError(
      `sft: custom_envs.${tag}.prompt_format is ${prompt_format}, but demonstrations have no descriptions of states: set it to free_think or no_think`,
    );
  const stated =
    tools.pictures && played?.state_forms?.structured !== undefined
      ? new StatedEnvironments(tools.environments)
      : undefined;
  let solved = 0;
  const asked = new Map<string, EpisodeEntry>(); // the episodes in progress, by the row of their next turn
  const demonstrator = new SolverDemonstrator(
    {
      encode: text => tools.tokenizer.encode(text),
      decode: ids => tools.tokenizer.decode(ids),
      stopTokenId: tools.tokenizer.stopTokenIds[0],
      stateOf: row => stated?.stateOf(asked.get(row)!.id),
      solve: async rows => {
        const entries = rows.map(row => asked.get(row)!);
        const plans = await tools.environments.solve(entries.map(({ id }) => id));
        solved += plans.filter(({ actions }) => actions !== undefined).length;
        return new Map(
          plans.map(({ actions = [] }, i) => [
            rows[i],
            actions.map(a => entries[i].actions?.[Number(a)] ?? names?.[Number(a)] ?? String(a)),
          ]),
        );
      },
    },
    {
      maxDepth,
      actionsPerTurn: played?.roles ? 1 : agent_proxy.max_actions_per_turn,
      actionSeparator: agent_proxy.action_sep,
      named: names !== undefined,
      thinks: agent_proxy.enable_think,
      tag: agent_proxy.answer_tag,
      tools: played?.tools && (tools.tokenizer.toolSyntax?.(agent_proxy.tool_format) ?? plainSyntax),
    },
  );
  const { memory } = config.workbench.plugins;
  if (memory !== null)
    throw new UserError(
      `sft: workbench.plugins.memory is ${memory}, but demonstrations are made with the built-in summary: set it to null`,
    );
  const groups = { env_groups: batch, group_size: 1, env_configs: { tags: [tag], n_groups: [batch] } };
  const proxy = new AgentProxy(demonstrator, stated ?? tools.environments, tools.tokenizer, {
    seed: config.seed,
    agent_proxy,
    rollout: config.actor_rollout_ref.rollout,
    es_manager: { ...config.es_manager, train: groups },
    custom_envs: config.custom_envs,
    enable_response_mask: true,
    ragen: false,
    async_rollout: config.workbench.async_rollout,
    max_failed_episodes_share: config.workbench.max_failed_episodes_share,
    stop_token_ids: [...tools.tokenizer.stopTokenIds],
    ...(tools.pictures && { pictures: tools.pictures }),
    observer: {
      begun: () => asked.clear(),
      ready: () => undefined,
      asked: some => some.forEach(({ entry }) => asked.set(rowOf(entry), entry)),
      ended: () => undefined,
    },
  });
  const shown: RolloutEpisode[] = [];
  for (let first = seed; shown.length < count; first += batch) {
    if (first - seed >= triesEach * count + batch)
      throw new UserError(
        `sft: only ${shown.length} of ${first - seed} levels of ${tag} were solved within ${maxDepth} actions, ${agent_proxy.max_turn} turns and ${config.actor_rollout_ref.rollout.max_model_len} tokens: raise one of these limits, or request fewer than ${count} demonstrations`,
      );
    const { episodes } = await proxy.rollout({
      mode: 'train',
      step: 0,
      environments: tools.loaded,
      seed: first,
      signal,
    });
    if (solved === 0)
      throw new UserError(
        `sft: the solver of environment ${tag} solves no level: add or correct solve(), or leave the environment out`,
      );
    appendAll(
      shown,
      episodes.filter(({ success, error }) => success && !error),
    );
    onProgress?.(Math.min(shown.length, count));
  }
  return shown.slice(0, count);
}
