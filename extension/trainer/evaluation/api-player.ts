// Plays an evaluation with a model behind an API. Up to `max_concurrency` episodes run at the same time; episodes do
// not wait for each other, so a slow response delays only its own episode. A truncated or filtered response ends its
// episode as unsolved.
import pMap from 'p-map';
import type { LoadedEnvironment } from '../../protocol/environment-link';
import type { Episode } from '../../run-data/episode';
import type { RunConfig } from '../config/schema';
import type { ApiModel } from '../config/schema-evaluation';
import type { Journal } from '../run/journal';
import { AgentProxy } from '../rollout/agent-proxy';
import type { RolePlayers } from '../rollout/role-players';
import type { Remember } from '../rollout/remembered-window';
import type { EnvironmentPool } from '../../environments/client/environment-pool';
import { episodeRecord } from '../rollout/episode-record';
import { responsePrefix } from '../rollout/tool-protocol';
import { tagProtocol, turnProtocol } from '../rollout/turn-protocol';
import type { RunControl } from '../run/run-control';
import { RunStopped } from '../../engine/run-stopped';
import type { JudgePanel } from '../rewards/judge-panel';
import { maxPictureBytes } from '../../models/vision/picture';
import type { PictureStore } from '../../node/picture-store';
import { ObservedPictures } from '../rollout/observed-pictures';
import { ApiClient } from './api-client';
import { ApiGenerator, MessageNumbers } from './api-generator';
import type { ApiBill } from './api-generator';
import { picturedMessages } from './api-images';
import type { ApiService } from './api-service';
import type { Player, ValidationSlot } from './evaluate';
import { addedMetrics } from './evaluation-summary';
import { ownMetrics } from './local-player';

export interface ApiPlayerParts {
  config: RunConfig;
  model: ApiModel;
  service: ApiService;
  environments: EnvironmentPool;
  loaded: readonly LoadedEnvironment[];
  control: RunControl;
  journal: Journal;
  judges?: JudgePanel | undefined;
  players?: RolePlayers | undefined;
  remember?: Remember | undefined;
  /** Where pictures of observations are stored; requests read them from there. */
  pictures: PictureStore;
}

export class ApiPlayer implements Player {
  private readonly observed: ObservedPictures;

  constructor(private readonly parts: ApiPlayerParts) {
    this.observed = new ObservedPictures(parts.pictures);
  }

  get prices(): Player['prices'] {
    return this.parts.model.price_per_million ?? undefined;
  }

  async play(slots: readonly ValidationSlot[], finished: (episodes: readonly Episode[]) => void): Promise<void> {
    const { config, model, service, control, journal } = this.parts;
    const abort = new AbortController();
    const stop = (): void => abort.abort();
    control.stopped.addEventListener('abort', stop, { once: true });
    const { timeout_s, max_retries: maxRetries } = model;
    const client = new ApiClient(service, { timeoutMs: timeout_s * 1000, maxRetries, signal: abort.signal });
    const play = async (slot: ValidationSlot): Promise<void> => {
      if (abort.signal.aborted) return;
      try {
        finished([await this.episode(slot, client)]);
      } catch (error) {
        abort.abort();
        throw error;
      }
    };
    const concurrency = config.model_config?.max_concurrency ?? 1;
    const failed = await pMap(slots, play, { concurrency, stopOnError: false }).then(
      () => [],
      ({ errors }: AggregateError) => errors as Error[],
    );
    control.stopped.removeEventListener('abort', stop);
    if (client.retries > 0) journal.event('warning', `${client.retries} requests to ${service.url} were retried`);
    if (control.state === 'stopping') throw new RunStopped();
    // The first failure aborts all other episodes. The search for the cause therefore skips errors that only report an
    // abort.
    if (failed.length > 0) throw failed.find(({ name }) => name !== 'AbortError') ?? failed[0];
  }

  private async episode(slot: ValidationSlot, client: ApiClient): Promise<Episode> {
    const { config, environments, loaded, control, journal, judges, players, remember, pictures } = this.parts;
    const { actor_rollout_ref, es_manager, custom_envs, seed, enable_response_mask } = config;
    const agent_proxy = turnProtocol(config);
    const environment = loaded.find(({ tag }) => tag === slot.tag) ?? {};
    const numbers = new MessageNumbers(responsePrefix(tagProtocol(agent_proxy, custom_envs[slot.tag]), environment));
    const generator = new ApiGenerator(numbers, async messages => {
      if (!(await control.gate())) throw new RunStopped();
      return client.ask(await picturedMessages(messages, name => pictures.read(name, maxPictureBytes)));
    });
    const proxy = new AgentProxy(generator, environments, numbers, {
      seed,
      agent_proxy,
      rollout: { ...actor_rollout_ref.rollout, max_model_len: Infinity }, // the service limits the context
      es_manager,
      custom_envs,
      enable_response_mask,
      ragen: config.workbench.compat === 'ragen',
      async_rollout: config.workbench.async_rollout,
      max_failed_episodes_share: 1, // evaluate.ts checks the share over all episodes
      stop_token_ids: [],
      pictures: this.observed,
      ...(judges && { judges }),
      ...(players && { players }),
      ...(remember && { remember }),
    });
    const { episodes } = await proxy.rollout({
      mode: 'val',
      step: 0,
      environments: loaded,
      signal: control.stopped,
      round: slot.round,
      seed: slot.first,
      only: new Set([slot.env_id]),
      onFailure: ({ tag, seed, failure }) =>
        journal.event('environment_error', failure.message, { tag, seed, kind: failure.kind, at: failure.at }),
    });
    const [episode] = episodes;
    const { bill } = generator;
    if (bill.failure !== null)
      journal.event('warning', `${episode.id} ended without a usable response (${bill.failure})`);
    episode.metrics = { ...ownMetrics(episode), ...billMetrics(bill) };
    return withoutTokens(episodeRecord(episode));
  }
}

function billMetrics({ requests, input_tokens, output_tokens, failure }: ApiBill): Record<string, number> {
  return {
    [addedMetrics.tokens]: output_tokens,
    [addedMetrics.requests]: requests,
    [addedMetrics.inputTokens]: input_tokens,
    [addedMetrics.outputTokens]: output_tokens,
    [addedMetrics.cut]: Number(failure === 'length'),
    [addedMetrics.filtered]: Number(failure === 'content_filter'),
    [addedMetrics.refused]: Number(failure?.startsWith('refused') ?? false),
  };
}

/** Removes the token ids of an episode, because with an API model they are only message numbers. */
const withoutTokens = (episode: Episode): Episode => ({
  ...episode,
  turns: episode.turns.map(turn => ({ ...turn, span: [0, 0] })),
  tokens: { ids: [], mask: [], logprobs: [] },
});
