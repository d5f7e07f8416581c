// The judges of a run: models behind APIs that score complete episodes by a rubric, or descriptions of states in
// answers (state-judge.ts). Requests are limited, retried and cached; their budgets hold for the whole run. Invariant:
// a failure of a judge never ends the run. Its component is then missing for the episode, and a warning states the
// reason.
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { judgementLineSchema, type Judgement } from '../../run-data/judgement';
import { readBoundedSync } from '../../node/bounded-file';
import { maximum } from '../../common/lists';
import { UserError } from '../../common/user-error';
import { RequestSlots } from '../../models/tinker/request-slots';
import type { RunConfig } from '../config/schema';
import type { ApiModel } from '../config/schema-evaluation';
import type { JudgeSettings, StateJudgeSettings } from '../config/schema-rewards';
import { ApiClient, RequestRefused, type ApiClientOptions } from '../evaluation/api-client';
import { apiService, type ApiAnswer, type ApiService } from '../evaluation/api-service';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import { judgeConversation, readScore, type JudgedEpisode } from './judge-prompt';
import { judgedParts, stateConversation, stateCriteria, type DescribedState } from './state-judge';
import { billOf, PaidRequests, type Payer } from './paid-requests';
import { ReplyCache } from './reply-cache';

/** Judges the episodes of one rollout. */
export interface RolloutJudges {
  /** Returns the judgements of an episode by component. Never rejects. */
  judge(tag: string, judged: JudgedEpisode): Promise<Record<string, Judgement[]>>;
  /** Returns the judgements of a description by the tag's judge of states. Never rejects. */
  judgeState(tag: string, described: DescribedState): Promise<Judgement[]>;
  /** Seconds for which the rollout should wait for judgements. */
  readonly waitSeconds: number;
  /** Ends all requests; the judgements of these requests have no score. */
  end(): void;
}

/** A model that judges for a component. */
interface Judge extends Payer {
  component: string;
  settings: JudgeSettings | StateJudgeSettings;
  /** The file with the judge's criteria; undefined for the built-in criteria. */
  criteria: { key: string; path: string } | undefined;
  model: ApiModel;
  name: string;
  service: ApiService;
}

export interface JudgePanelOptions {
  config: Pick<RunConfig, 'custom_envs' | 'model_info'>;
  tags: readonly string[];
  workspace: string;
  /** Path of `judgements.jsonl`. */
  file: string;
  environment: Readonly<Record<string, string | undefined>>;
  warn(message: string): void;
  pauseMs?: ApiClientOptions['pauseMs'];
}

/** Maximum tokens of a reply, if `generation_kwargs` sets none and the protocol requires a limit. */
const replyTokens = 512;
const mostRubricBytes = 2 ** 20;
/** Maximum characters of a reply that are stored with an episode. */
const longestReply = 2000;

export class JudgePanel {
  private readonly byTag = new Map<string, Judge[]>();
  /** The judges of descriptions. */
  private readonly statesByTag = new Map<string, Judge[]>();
  private readonly cache: ReplyCache<Judgement>;
  private readonly requests: PaidRequests<Judgement>;
  /** The last reported reason by judge, so that a reason is not reported again and again. */
  private readonly reported = new Map<string, string>();

  /**
   * Returns the judges of the given tags; undefined if no tag has judges.
   * @throws UserError if a key is missing or a rubric cannot be read
   */
  static open(options: JudgePanelOptions): JudgePanel | undefined {
    const { custom_envs } = options.config;
    const judged = options.tags.some(
      tag => Object.keys(custom_envs[tag].rewards?.judges ?? {}).length > 0 || judgedParts(custom_envs[tag]).length > 0,
    );
    return judged ? new JudgePanel(options) : undefined;
  }

  private constructor(private readonly options: JudgePanelOptions) {
    const { config, tags, environment, file, warn } = options;
    const judgesOf = (
      tag: string,
      component: string,
      settings: Judge['settings'],
      criteria: Judge['criteria'],
    ): Judge[] =>
      settings.models.map(name => {
        const model = config.model_info![name];
        const service = apiService(name, model, replyTokens, environment);
        const slots = new RequestSlots(settings.max_concurrency);
        return { component, account: `${tag}/${component}`, settings, criteria, model, name, service, slots };
      });
    for (const tag of new Set(tags)) {
      const { rewards } = config.custom_envs[tag];
      const at = `custom_envs.${tag}.rewards`;
      this.byTag.set(
        tag,
        Object.entries(rewards?.judges ?? {}).flatMap(([component, settings]) =>
          judgesOf(tag, component, settings, { key: `${at}.judges.${component}.rubric`, path: settings.rubric }),
        ),
      );
      const settings = rewards?.state_judge;
      const criteria = settings?.prompt ? { key: `${at}.state_judge.prompt`, path: settings.prompt } : undefined;
      this.statesByTag.set(
        tag,
        judgedParts(config.custom_envs[tag]).flatMap(part => judgesOf(tag, part, settings!, criteria)),
      );
    }
    for (const judge of this.all) this.criteriaOf(judge);
    this.cache = new ReplyCache<Judgement>(file, {
      read: line => {
        const { key, account, ...judgement } = judgementLineSchema.parse(line);
        return { key, account, reply: { ...judgement, cached: true } };
      },
      answers: ({ score }) => score !== null,
      onUnwritten: ({ message }) => warn(`judges: a reply was not stored (${message})`),
    });
    this.requests = new PaidRequests(this.cache);
  }

  /** Begins to judge a rollout, by the rubrics as they are now. */
  openRollout(): RolloutJudges {
    const abort = new AbortController();
    const criteria = new Map<Judge, string | Error>();
    for (const judge of this.all) {
      try {
        criteria.set(judge, this.criteriaOf(judge));
      } catch (error) {
        criteria.set(judge, error as Error); // the file was removed while the run trains
      }
    }
    const clients = new Map<Judge, ApiClient>();
    const clientOf = (judge: Judge): ApiClient => {
      let client = clients.get(judge);
      if (!client) clients.set(judge, (client = this.client(judge, abort.signal)));
      return client;
    };
    const ask = async (judge: Judge, conversation: (criteria: string) => ChatMessage[]): Promise<Judgement> => {
      const given = criteria.get(judge)!;
      if (given instanceof Error) return this.failed(judge, given.message);
      return this.ask(judge, conversation(given), clientOf(judge), abort.signal);
    };
    const waits = this.all.map(({ settings }) => settings.wait_s);
    return {
      waitSeconds: maximum(waits, 0),
      judge: async (tag, episode) => {
        const judges = this.byTag.get(tag) ?? [];
        const judgements = await Promise.all(
          judges.map(judge =>
            ask(judge, rubric => judgeConversation(episode, { rubric, scale: judge.settings.scale })),
          ),
        );
        const found: Record<string, Judgement[]> = {};
        judges.forEach(({ component }, i) => (found[component] ??= []).push(judgements[i]));
        return found;
      },
      judgeState: (tag, described) => {
        const judges = (this.statesByTag.get(tag) ?? []).filter(({ component }) => component === described.part);
        return Promise.all(
          judges.map(judge =>
            ask(judge, criteria => stateConversation(described, { criteria, scale: judge.settings.scale })),
          ),
        );
      },
      end: () => abort.abort(),
    };
  }

  close(): void {
    this.cache.close();
  }

  private get all(): Judge[] {
    return [...this.byTag.values(), ...this.statesByTag.values()].flat();
  }

  private client({ model, service }: Judge, signal: AbortSignal): ApiClient {
    const { timeout_s, max_retries: maxRetries } = model;
    const consequence = 'the reward component is missing for this episode';
    const { pauseMs } = this.options;
    return new ApiClient(service, {
      timeoutMs: timeout_s * 1000,
      maxRetries,
      signal,
      consequence,
      ...(pauseMs && { pauseMs }),
    });
  }

  private ask(judge: Judge, messages: ChatMessage[], client: ApiClient, signal: AbortSignal): Promise<Judgement> {
    const { settings, service } = judge;
    const request = JSON.stringify([service.url, service.body(messages)]);
    return this.requests.reply({
      key: createHash('sha256').update(request).digest('hex'),
      payer: judge,
      signal,
      send: async () => this.read(judge, await client.ask(messages)),
      failed: why => {
        if (typeof why === 'string') return this.failed(judge, why);
        if (signal.aborted) return this.failed(judge, `no answer within wait_s ${settings.wait_s}`);
        const refused = why instanceof RequestRefused;
        return this.failed(judge, refused ? `the service refuses the request (${why.message})` : why.message);
      },
    });
  }

  private read(judge: Judge, answer: ApiAnswer): Judgement {
    const { text, finish } = answer;
    const bill = billOf(answer, judge.model);
    const score = finish === 'stop' ? readScore(text, judge.settings.scale) : undefined;
    if (score !== undefined)
      return { model: judge.name, score, text: text.slice(0, longestReply), cached: false, ...bill };
    const why =
      finish === 'stop'
        ? `the reply has no line "Score: n" with 0 ≤ n ≤ ${judge.settings.scale}`
        : finish === 'length'
          ? 'the reply was cut at the token limit'
          : 'the reply was filtered';
    return { ...this.failed(judge, why), ...bill };
  }

  /** Returns a judgement without a score. Reports its reason, unless it is the reason of the last report. */
  private failed({ component, name }: Judge, why: string): Judgement {
    const judge = `${component} ${name}`;
    if (this.reported.get(judge) !== why) {
      this.reported.set(judge, why);
      this.options.warn(`judge ${name} gave no score for the reward component ${component}: ${why}`);
    }
    return { model: name, score: null, text: why, cached: false, tokens: 0, cost: 0 };
  }

  /** @throws UserError if the criteria cannot be read */
  private criteriaOf({ criteria }: Judge): string {
    if (!criteria) return stateCriteria;
    const at = `config: ${criteria.key} is ${criteria.path}`;
    let text: string;
    try {
      const file = resolve(this.options.workspace, criteria.path);
      text = readBoundedSync(file, { most: mostRubricBytes, within: null }).toString();
    } catch (error) {
      const what = criteria.key.endsWith('rubric') ? 'a rubric' : 'a file';
      throw new UserError(`${at}, which cannot be read (${(error as Error).message}): set it to the path of ${what}`);
    }
    if (text.trim() === '') throw new UserError(`${at}, which is empty: write the criteria into the file`);
    return text;
  }
}

/** Returns the value of each component that at least one judge scored: the mean of the scores. */
export function judgedComponents(judgements: Readonly<Record<string, readonly Judgement[]>>): Record<string, number> {
  const means = Object.entries(judgements).flatMap(([component, each]): [string, number][] => {
    const scores = each.flatMap(({ score }) => score ?? []);
    return scores.length > 0 ? [[component, scores.reduce((sum, score) => sum + score, 0) / scores.length]] : [];
  });
  return Object.fromEntries(means);
}
