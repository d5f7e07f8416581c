// What-if: replays a stored episode up to a chosen turn. From this turn on, the user or a policy plays the episode
// differently. The agent proxy plays the single episode as in training, with the environment code of the original
// episode. The replayed turns must match the stored turns. The result is an ordinary episode, written to `what-if/`
// with a reference to the original.
import type { WhatIfParts } from './what-if-parts';
import type { GivenAnswer, WhatIfRequest, WhatIfState } from '../../protocol/inspection';
import type { Episode } from '../../run-data/episode';
import { UserError } from '../../common/user-error';
import { TokenPieces } from '../../models/tokenizer/token-pieces';
import { AgentProxy } from '../rollout/agent-proxy';
import type { AgentProxyOptions, PlayedSoFar } from '../rollout/rollout-request';
import { isDone } from '../rollout/environment-state-manager';
import { finishedEpisode } from '../rollout/rollout-batch';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { observedPictures } from '../run/run-pictures';
import { deriveSeed } from '../rollout/seeds';
import { responsePrefix } from '../rollout/tool-protocol';
import { judgedParts } from '../rewards/state-judge';
import { tagProtocol, turnProtocol } from '../rollout/turn-protocol';
import { givenTokens } from './given-answer';
import { ScriptedTurns } from './scripted-turns';
import type { ScriptedTurn, TurnSource } from './scripted-turns';
import {
  differenceOf,
  observationDifference,
  storedAnswer,
  sameIds,
  whatIfEpisode,
  writeWhatIf,
} from './what-if-episode';

/** The user's input for one turn. */
interface Move {
  given: GivenAnswer;
  checkpoint: string | null;
}

export class WhatIfSession {
  readonly notes: string[];
  readonly players: string[] = [];
  readonly turns: ScriptedTurn[] = [];
  private readonly cancelled = new AbortController();
  private playing: PlayedSoFar | undefined;
  /** Name of the checkpoint that plays all remaining turns; null while the user plays each turn. */
  private checkpoint: string | null;
  /** Resolves the pending turn with the user's input; undefined while no input is expected. */
  private move: ((move: Move) => void) | undefined;
  /** Number of tokens at the start of the changed turn that equal the recorded response. */
  kept = 0;
  /** Decodes the tokens of the turn that a policy is sampling. */
  private pieces: TokenPieces | undefined;
  private waits!: () => void;
  private waiting!: Promise<'waiting'>;
  private readonly end: Promise<Episode>;
  private written: WhatIfState['written'] = null;

  constructor(
    private readonly request: Pick<WhatIfRequest, 'turn' | 'given' | 'checkpoint' | 'seed'>,
    private readonly parts: WhatIfParts,
  ) {
    const { origin, environment } = parts;
    this.notes = [...environment.notes, ...judgesNote(this.parts)];
    this.checkpoint = request.checkpoint;
    if (request.turn < 1 || request.turn > origin.turns.length)
      throw new UserError(
        `what if: ${origin.id} has no turn ${request.turn}: choose a turn from 1 to ${origin.turns.length}`,
      );
    this.expectMove();
    this.end = this.play();
    this.end.catch(() => undefined); // the error is reported by `currentState`
  }

  /**
   * Resolves with the state when the user's input is needed or the episode is over. Rejects with the error that ended
   * the episode.
   */
  async currentState(): Promise<WhatIfState> {
    const episode = await Promise.race([this.end, this.waiting]);
    if (episode !== 'waiting') return this.stateOf(await this.write(episode));
    const { entry, context } = this.playing!;
    const { mode, step } = this.parts.origin;
    return this.stateOf(this.record(finishedEpisode({ mode, step }, entry, context)));
  }

  /** Plays the user's turn. @throws UserError if no input is expected */
  playTurn(move: Move): Promise<WhatIfState> {
    const { move: give } = this;
    if (!give) throw new UserError('what if: the policy is still playing its turn: wait until the turn is over');
    if (move.checkpoint === null && move.given.answer === undefined)
      throw new UserError(
        'what-if: this turn has neither a response nor a checkpoint: write a response, or choose the checkpoint that plays the turn',
      );
    this.expectMove();
    give(move);
    return this.currentState();
  }

  /** Writes the turns played so far, and returns the state. Returns null if the changed turn was not played yet. */
  async writePlayed(): Promise<WhatIfState | null> {
    if (!this.playing || this.playing.entry.history.length < this.request.turn) return null;
    const { entry, context } = this.playing;
    const { mode, step } = this.parts.origin;
    return this.stateOf(await this.write(this.record(finishedEpisode({ mode, step }, entry, context))));
  }

  /** Ends the what-if and stops its environment process. Writes nothing. */
  async close(): Promise<void> {
    this.cancelled.abort(
      new UserError('what if: this what-if was closed before its episode was over: start a new one'),
    );
    this.move?.({ given: { answer: '' }, checkpoint: null }); // the proxy checks for cancellation only between turns
    await this.end.catch(() => undefined);
    await this.parts.environment.process.stop();
  }

  private expectMove(): void {
    this.move = undefined;
    this.waiting = new Promise(resolve => (this.waits = () => resolve('waiting')));
  }

  private async play(): Promise<Episode> {
    const { origin, environment } = this.parts;
    const { mode, step, member, seed } = origin;
    const rows = new ScriptedTurns(
      `what-if ${this.parts.session}`,
      prompt => this.source(prompt),
      turn => this.turns.push(turn),
      (ids, logprobs) => this.report(ids, logprobs),
    );
    const proxy = new AgentProxy(rows, environment.process, this.parts.tokenizer, this.options());
    const batch = await proxy.rollout({
      mode,
      step,
      seed,
      only: new Set([member]),
      environments: [environment.loaded],
      signal: this.cancelled.signal,
    });
    return this.record(batch.episodes[0]);
  }

  /** Returns the agent proxy's options of this run, except that the batch consists of the episode's group alone. */
  private options(): AgentProxyOptions {
    const { run, tokenizer, origin } = this.parts;
    const { config } = run;
    const groups = { env_groups: 1, group_size: origin.member + 1, env_configs: { tags: [origin.tag], n_groups: [1] } };
    return {
      seed: config.seed,
      agent_proxy: turnProtocol(config),
      enable_response_mask: config.rollout_manager.use_loss_mask,
      ragen: config.workbench.compat === 'ragen',
      rollout: config.actor_rollout_ref.rollout,
      es_manager: { ...config.es_manager, train: groups, val: groups },
      custom_envs: config.custom_envs,
      async_rollout: false,
      max_failed_episodes_share: 1, // a failed environment is a valid result of a what-if
      stop_token_ids: tokenizer.stopTokenIds,
      ...observedPictures(config, run.folder.path, tokenizer),
      observer: {
        begun: (_, [played]) => (this.playing = played),
        ready: ([played]) => this.requireReached(played),
        asked: ([played]) => this.compare(played),
        ended: () => undefined,
      },
    };
  }

  /** Throws if the replayed episode ends before the turn that is to be changed. */
  private requireReached({ entry }: PlayedSoFar): void {
    if (!isDone(entry) || entry.history.length >= this.request.turn) return;
    const why = entry.error ? `: ${entry.error.message}` : '';
    throw new UserError(
      `what if: in the replay, ${this.parts.origin.id} is over before turn ${this.request.turn}, so the environment's code has changed since the episode was played${why}`,
    );
  }

  /** Throws if a replayed turn differs from the stored one. */
  private compare({ entry }: PlayedSoFar): void {
    const { origin } = this.parts;
    const played = entry.history.length;
    if (played >= this.request.turn) return;
    const before = played > 0 ? differenceOf(origin.turns[played - 1], entry.history[played - 1]) : undefined;
    const what = before ?? observationDifference(origin.turns[played], entry);
    if (what !== undefined)
      throw new UserError(
        `what if: turn ${before ? played : played + 1} of ${origin.id} has ${what} in the replay: either the environment depends on more than the seed and the actions, or the environment's code has changed since the episode was played`,
      );
  }

  private async source(prompt: readonly number[]): Promise<TurnSource> {
    const { origin, tokenizer } = this.parts;
    const turn = this.playing!.entry.history.length + 1;
    const stored = turn <= this.request.turn ? storedAnswer(origin, turn) : null;
    if (stored && turn === this.request.turn && !sameIds(prompt, stored.prompt))
      this.notes.push(
        `The prompt of turn ${turn} differs from the recorded prompt, because the tokenizer or its chat template has changed.`,
      );
    if (stored && turn < this.request.turn) return { from: 'stored', row: stored.row };

    let given: GivenAnswer = turn === this.request.turn ? this.request.given : {};
    if (this.checkpoint === null && given.answer === undefined) {
      const move = await new Promise<Move>(resolve => {
        this.move = resolve;
        this.waits();
      });
      this.move = undefined;
      this.cancelled.signal.throwIfAborted();
      given = { ...given, ...move.given };
      this.checkpoint = move.checkpoint;
    }
    const { config } = this.parts.run;
    const protocol = tagProtocol(turnProtocol(config), config.custom_envs[origin.tag]);
    const { tools } = this.parts.environment.loaded;
    const recorded = stored && { raw: origin.turns[turn - 1].raw, ids: stored.row.ids };
    const { ids, kept, complete } = givenTokens(
      tokenizer,
      responsePrefix(protocol, this.parts.environment.loaded),
      given,
      recorded,
      protocol.answer_tag,
      tools && { tools, syntax: tokenizer.toolSyntax(protocol.tool_format ?? 'auto') },
    );
    this.kept = turn === this.request.turn ? kept : this.kept;
    this.players.push(complete || this.checkpoint === null ? 'hand' : this.checkpoint);
    if (complete || this.checkpoint === null) return { from: 'hand', ids };
    this.pieces = new TokenPieces(tokenizer);
    const seed = deriveSeed('what-if-sampling', this.request.seed, turn);
    return { from: 'policy', given: ids, seed, play: this.parts.policy(this.checkpoint) };
  }

  private report(ids: readonly number[], logprobs: readonly number[]): void {
    const turn = this.playing!.entry.history.length + 1;
    this.parts.onTokens(
      turn,
      ids.map((id, i) => ({ id, text: this.pieces!.push(id), logprob: logprobs[i] })),
    );
  }

  /** Converts the played episode to a record of the run folder; `writeWhatIf` assigns its id. */
  private record(played: RolloutEpisode): Episode {
    return whatIfEpisode(played, this.parts, this.request, this);
  }

  /**
   * Writes an episode under the first unused id, and returns it with this id. If an episode was already written, writes
   * nothing.
   */
  private async write(episode: Episode): Promise<Episode> {
    this.written ??= writeWhatIf(this.parts.run.folder, episode);
    return { ...episode, id: this.written.id };
  }

  private stateOf(episode: Episode): WhatIfState {
    const { loaded } = this.parts.environment;
    const actions = Object.values(this.playing?.entry.actions ?? loaded.actions ?? {});
    return { session: this.parts.session, episode, written: this.written, actions, notes: [...this.notes] };
  }
}

/** Returns a note about the reward components that are missing in a what-if, because it sends nothing to judges. */
function judgesNote({ run, origin: { tag } }: Pick<WhatIfParts, 'run' | 'origin'>): string[] {
  const settings = run.config.custom_envs[tag];
  const names = settings ? [...Object.keys(settings.rewards?.judges ?? {}), ...judgedParts(settings)] : [];
  if (names.length === 0) return [];
  return [`A what-if asks no judges, so these reward components are missing from its score: ${names.join(', ')}.`];
}
