// Roles that models behind APIs play: a user simulator, a judge that talks, a stronger opponent. Such a role has a
// context like every role, whose "tokens" are numbered messages (evaluation/api-generator.ts); its turns are not
// trained. Requests are limited, retried, budgeted and cached like those of judges. Invariant: a failure fails the
// episode with one sentence, as a failure of its environment does.
import { createHash } from 'node:crypto';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import { RequestSlots } from '../../models/tinker/request-slots';
import { maxPictureBytes } from '../../models/vision/picture';
import type { PictureStore } from '../../node/picture-store';
import { roleReplyLineSchema } from '../../run-data/role-reply';
import type { RunConfig } from '../config/schema';
import type { ApiModel } from '../config/schema-evaluation';
import type { RolePlayerSettings } from '../config/schema-roles';
import { ApiClient, RequestRefused, type ApiClientOptions } from '../evaluation/api-client';
import { MessageNumbers } from '../evaluation/api-generator';
import { picturedMessages } from '../evaluation/api-images';
import { apiService, type ApiAnswer, type ApiService } from '../evaluation/api-service';
import { billOf, PaidRequests, type Payer } from '../rewards/paid-requests';
import { ReplyCache, type PaidReply } from '../rewards/reply-cache';
import type { RolloutPlayers } from './role-player';

/** A reply; `why` is the reason if there is none. */
interface RoleReply extends PaidReply {
  model: string;
  text: string;
  finish: ApiAnswer['finish'];
  why?: string;
}

/** A model that plays a role of a tag. */
interface Player extends Payer {
  settings: RolePlayerSettings;
  model: ApiModel;
  service: ApiService;
}

export interface RolePlayersOptions {
  config: Pick<RunConfig, 'custom_envs' | 'model_info' | 'actor_rollout_ref'>;
  tags: readonly string[];
  /** Path of `role-replies.jsonl`. */
  file: string;
  environment: Readonly<Record<string, string | undefined>>;
  warn(message: string): void;
  /** Where pictures of observations are stored; requests read them from there. */
  pictures: Pick<PictureStore, 'read'>;
  pauseMs?: ApiClientOptions['pauseMs'];
}

export class RolePlayers {
  private readonly byAccount = new Map<string, Player>();
  private readonly cache: ReplyCache<RoleReply>;
  private readonly requests: PaidRequests<RoleReply>;

  /**
   * Returns the players of the given tags; undefined if no tag has players.
   * @throws UserError if a key is missing
   */
  static open(options: RolePlayersOptions): RolePlayers | undefined {
    const { custom_envs } = options.config;
    return options.tags.some(tag => Object.keys(custom_envs[tag].roles ?? {}).length > 0)
      ? new RolePlayers(options)
      : undefined;
  }

  private constructor(private readonly options: RolePlayersOptions) {
    const { config, tags, file, environment, warn } = options;
    for (const tag of new Set(tags))
      for (const [role, settings] of Object.entries(config.custom_envs[tag].roles ?? {})) {
        const model = config.model_info![settings.model];
        const limit = config.actor_rollout_ref.rollout.response_length;
        const service = apiService(settings.model, model, limit, environment);
        const slots = new RequestSlots(settings.max_concurrency);
        const account = `${tag}/${role}`;
        this.byAccount.set(account, { account, settings, model, service, slots });
      }
    this.cache = new ReplyCache<RoleReply>(file, {
      read: line => {
        const { key, account, ...reply } = roleReplyLineSchema.parse(line);
        return { key, account, reply: { ...reply, cached: true } };
      },
      answers: ({ finish, why }) => finish === 'stop' && why === undefined,
      onUnwritten: ({ message }) => warn(`roles: a reply was not stored (${message})`),
    });
    this.requests = new PaidRequests(this.cache);
  }

  /** Begins a rollout. A service that refused all requests of an earlier rollout is asked again. */
  openRollout(): RolloutPlayers {
    for (const player of this.byAccount.values()) delete player.refused;
    const abort = new AbortController();
    const clients = new Map<Player, ApiClient>();
    const clientOf = (player: Player): ApiClient => {
      let client = clients.get(player);
      if (!client) clients.set(player, (client = this.client(player, abort.signal)));
      return client;
    };
    return {
      open: ({ id, tag }, role, prefix) => {
        const player = this.byAccount.get(`${tag}/${role}`);
        if (!player) return undefined;
        const numbers = new MessageNumbers(prefix);
        let held: number[] = [];
        return {
          numbers,
          answer: async ({ append, fresh }, turn) => {
            const prompt = fresh ? append : [...held, ...append];
            const conversation = numbers.conversation(prompt);
            const place = player.settings.share_replies ? [] : [id, turn];
            const { text, why } = await this.ask(player, conversation, place, clientOf(player), abort.signal);
            if (why !== undefined)
              return `model ${player.settings.model} did not play the role ${role} of ${tag} in turn ${turn}: ${why}`;
            const number = numbers.encodeAnswer(text);
            held = [...prompt, number];
            return { ids: [number], logprobs: [0], finish: 'stop' };
          },
        };
      },
      end: () => abort.abort(),
    };
  }

  close(): void {
    this.cache.close();
  }

  private client({ model, service }: Player, signal: AbortSignal): ApiClient {
    const { timeout_s, max_retries: maxRetries } = model;
    const { pauseMs } = this.options;
    return new ApiClient(service, {
      ...{ timeoutMs: timeout_s * 1000, maxRetries, signal, consequence: 'the episode ends' },
      ...(pauseMs && { pauseMs }),
    });
  }

  /** @param place what distinguishes the request from others with the same conversation */
  private ask(
    player: Player,
    messages: readonly ChatMessage[],
    place: readonly (string | number)[],
    client: ApiClient,
    signal: AbortSignal,
  ): Promise<RoleReply> {
    const { service, model, settings } = player;
    const request = JSON.stringify([service.url, service.body(messages), ...place]);
    const empty = { model: settings.model, text: '', finish: 'stop' as const, cached: false, tokens: 0, cost: 0 };
    return this.requests
      .reply({
        key: createHash('sha256').update(request).digest('hex'),
        payer: player,
        signal,
        send: async () => {
          const { pictures } = this.options;
          const answer = await client.ask(
            await picturedMessages(messages, name => pictures.read(name, maxPictureBytes)),
          );
          const { text, finish } = answer;
          return { ...empty, text, finish, ...billOf(answer, model) };
        },
        failed: why => {
          if (typeof why === 'string') return { ...empty, why };
          if (signal.aborted) return { ...empty, why: 'the rollout ended before the reply' };
          const refused = why instanceof RequestRefused;
          return { ...empty, why: refused ? `the service refuses the request (${why.message})` : why.message };
        },
      })
      .then(reply => {
        if (reply.finish === 'stop') return reply;
        const cut = 'the reply was cut at the token limit: raise the limit in generation_kwargs';
        return { ...reply, why: reply.finish === 'length' ? cut : 'the reply was filtered' };
      });
  }
}
