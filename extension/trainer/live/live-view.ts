// The live view of a run: sends one episode of the current rollout to watchers while the episode is played. Watching
// does not change the results. Without watchers, no messages are built. Tokens are sent in batches every 50 ms. The
// complete episode so far is sent at the beginning and end of each turn, so a watcher that connects later also receives
// the earlier turns.
import type { WatchChoice, WatchedEpisode, WatchedTurn } from '../../protocol/trainer-link';
import type { RemoteEngine } from '../../engine/remote-engine';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import { TokenPieces } from '../../models/tokenizer/token-pieces';
import type { PlayedSoFar, RolloutObserver } from '../rollout/rollout-request';
import type { TurnHistory } from '../rollout/environment-state-manager';
import { callText } from '../../run-data/tool-call';
import type { LoadedEnvironment } from '../../protocol/environment-link';
import { componentRewards } from '../rollout/rollout-batch';
import { roleReturns } from '../rollout/role-credit';
import { rowOf } from '../rollout/roles-context';
import { isDone } from '../rollout/environment-state-manager';

/** Receives the watched episode, and its new tokens while it is being played. */
export interface Viewer {
  episode(episode: WatchedEpisode | null): void;
  tokens(id: string, turn: number, at: number, tokens: WatchedTurn['tokens']): void;
}

/** The parts of an opened run that the view reads. */
export interface LiveSource {
  engine: Pick<RemoteEngine, 'watch'>;
  tokenizer: Pick<ChatTokenizer, 'decode'>;
  /** Returns the prefix of every response in an environment. */
  prefix(environment: Pick<LoadedEnvironment, 'tag' | 'tools' | 'model_calls'>): string;
  tags: readonly string[];
  /** Maximum number of turns per episode. */
  maxTurn: number;
}

/** Interval in milliseconds at which new tokens are sent. */
const gatherMs = 50;

interface Watched {
  played: PlayedSoFar;
  mode: 'train' | 'val';
  step: number;
  /**
   * Tokens with log-probs by turn. Turns that were sampled before the episode was watched are absent; `tokensOf` reads
   * the tokens of these turns from the episode's samples.
   */
  tokens: Map<number, WatchedTurn['tokens']>;
  /** Number of the turn that is being sampled; 0 between turns. */
  answering: number;
}

export class LiveView implements RolloutObserver {
  private readonly viewers = new Map<object, Viewer>();
  private choice: WatchChoice = {};
  private source: LiveSource | undefined;
  private at: { mode: 'train' | 'val'; step: number } | undefined;
  /** All episodes of the current rollout. */
  private all: readonly PlayedSoFar[] = [];
  private asking = new Map<PlayedSoFar, number>();
  private watched: Watched | undefined;
  private pieces: TokenPieces | undefined;
  private sent = 0;
  private timer: NodeJS.Timeout | undefined;

  /** Connects the view to the opened run. */
  connect(source: LiveSource): void {
    this.source = source;
  }

  /**
   * Adds a viewer, or changes the choice of an existing viewer. Returns all tags and the episode that is now watched.
   */
  watch(who: object, viewer: Viewer, choice: WatchChoice): { tags: string[]; episode: WatchedEpisode | null } {
    this.viewers.set(who, viewer);
    const changed = choice.tag !== this.choice.tag || choice.group !== this.choice.group;
    this.choice = choice;
    if (!this.watched || (changed && !this.fits(this.watched.played))) this.chooseAnother();
    return { tags: [...(this.source?.tags ?? [])], episode: this.picture() };
  }

  /** Removes a viewer. */
  unwatch(who: object): void {
    if (!this.viewers.delete(who) || this.viewers.size > 0) return;
    this.choice = {};
    this.follow(undefined);
  }

  begun(at: { mode: 'train' | 'val'; step: number }, all: readonly PlayedSoFar[]): void {
    this.at = at;
    this.all = all;
    this.asking = new Map();
    if (this.viewers.size > 0) this.chooseAnother();
  }

  asked(some: readonly PlayedSoFar[]): void {
    for (const played of some) this.asking.set(played, played.entry.history.length + 1);
    if (this.watched && some.includes(this.watched.played)) this.beginTurn(this.watched);
  }

  ready(some: readonly PlayedSoFar[]): void {
    for (const played of some) this.asking.delete(played);
    const { watched } = this;
    if (!watched || !some.includes(watched.played)) return;
    watched.answering = 0;
    this.sendEpisode();
    if (this.isOver(watched.played)) this.chooseAnother();
  }

  ended(): void {
    this.all = [];
    this.at = undefined;
    this.follow(undefined);
    this.each(viewer => viewer.episode(null));
  }

  /**
   * Switches to an unfinished episode that matches the choice: the one with the fewest turns. If no episode matches,
   * none is watched.
   */
  private chooseAnother(): void {
    const open = this.all.filter(played => this.fits(played) && !this.isOver(played));
    const next = open.reduce<PlayedSoFar | undefined>(
      (first, other) => (!first || other.entry.history.length < first.entry.history.length ? other : first),
      undefined,
    );
    this.follow(next);
    if (this.watched) this.sendEpisode();
  }

  private isOver({ entry }: PlayedSoFar): boolean {
    return isDone(entry) || entry.history.length >= (this.source?.maxTurn ?? Infinity);
  }

  private fits({ entry }: PlayedSoFar): boolean {
    const { tag, group } = this.choice;
    return (tag === undefined || entry.tag === tag) && (group === undefined || entry.group_id === group);
  }

  private follow(played: PlayedSoFar | undefined): void {
    if (!played || !this.at) {
      if (this.watched) this.source?.engine.watch(null);
      this.watched = undefined;
      this.gather(false);
      return;
    }
    this.watched = { played, ...this.at, tokens: new Map(), answering: 0 };
    if (this.asking.has(played)) this.beginTurn(this.watched);
  }

  private beginTurn(watched: Watched): void {
    const { source } = this;
    if (!source) return;
    watched.answering = watched.played.entry.history.length + 1;
    const tokens: WatchedTurn['tokens'] = [];
    watched.tokens.set(watched.answering, tokens);
    this.pieces = new TokenPieces(source.tokenizer);
    this.sent = 0;
    this.sendEpisode();
    source.engine.watch(rowOf(watched.played.entry), (ids, logprobs) => {
      if (this.watched !== watched || watched.answering === 0) return; // the turn is over and its full text was sent
      ids.forEach((id, i) => tokens.push({ text: this.pieces!.push(id), logprob: logprobs[i] }));
      this.gather(true);
    });
  }

  /** If `more` is true, schedules a message with the new tokens; otherwise cancels the scheduled message. */
  private gather(more: boolean): void {
    if (!more) {
      clearTimeout(this.timer);
      this.timer = undefined;
      return;
    }
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const { watched } = this;
      const tokens = watched?.tokens.get(watched.answering);
      if (!watched || !tokens || tokens.length === this.sent) return;
      const at = this.sent;
      this.sent = tokens.length;
      const { id } = watched.played.entry;
      this.each(viewer => viewer.tokens(id, watched.answering, at, tokens.slice(at)));
    }, gatherMs);
  }

  private sendEpisode(): void {
    this.gather(false);
    const picture = this.picture();
    this.sent = this.watched?.tokens.get(this.watched.answering)?.length ?? 0;
    this.each(viewer => viewer.episode(picture));
  }

  private each(send: (viewer: Viewer) => void): void {
    for (const viewer of this.viewers.values()) send(viewer);
  }

  private picture(): WatchedEpisode | null {
    return this.watched ? this.pictureOf(this.watched) : null;
  }

  private pictureOf(watched: Watched): WatchedEpisode {
    const { played, mode, step, answering } = watched;
    const { entry } = played;
    const { id, tag, group_id, member, seed, history, max_actions_per_traj, num_actions } = entry;
    const prefix = this.source!.prefix(entry.environment);
    const { component_reward, end_reward } = componentRewards(entry);
    const shown = entry.pictures.length > 0 && { pictures: entry.pictures.map(({ name }) => name) };
    const turns = history.map((turn): WatchedTurn => {
      const { thought, answer, reward, penalty, calls, components, component_reward } = turn;
      const executed = calls ? calls.map(callText) : turn.executed;
      return {
        turn: turn.turn,
        ...(turn.role !== undefined && { role: turn.role }),
        state: turn.state,
        ...(turn.pictures && { pictures: turn.pictures }),
        actions_left: turn.actions_left!, // known for each turn that this trainer plays
        prefix,
        tokens: this.tokensOf(watched, turn, prefix),
        outcome: {
          ...{ thought, answer, executed, reward, penalty },
          ...(component_reward !== undefined && { components, component_reward }),
        },
      };
    });
    if (answering > history.length)
      turns.push({
        turn: answering,
        ...(entry.role !== undefined && { role: entry.role }),
        state: entry.state,
        ...shown,
        actions_left: max_actions_per_traj - num_actions,
        prefix,
        tokens: [...(watched.tokens.get(answering) ?? [])],
        outcome: null,
      });
    return {
      id,
      mode,
      step,
      tag,
      group_id,
      member,
      seed,
      turns,
      over: this.isOver(played),
      environment: { name: entry.environment.name, version: entry.version },
      state: entry.state,
      ...shown,
      success: entry.success,
      ...(entry.roles && { roles: roleReturns(entry.roles, history, end_reward) }),
      reward: history.reduce((sum, { reward }) => sum + reward, 0),
      penalty: entry.penalty,
      ...(component_reward !== undefined && { component_reward }),
      ...(entry.components && { components: entry.components }),
      ...(entry.error && { error: entry.error.message }),
    };
  }

  /**
   * Returns the tokens of a finished turn from the episode's samples, which also contain turns that were not watched.
   * The turn of a model behind an API is returned as one token.
   */
  private tokensOf(
    watched: Watched,
    { turn, raw }: Pick<TurnHistory, 'turn' | 'raw'>,
    prefix: string,
  ): WatchedTurn['tokens'] {
    for (const { ids, logprobs, turns } of watched.played.context.samples()) {
      const span = turns.find(each => each.turn === turn)?.span;
      if (!span) continue;
      const pieces = new TokenPieces(this.source!.tokenizer);
      const tokens = Array.from(ids.subarray(...span), (id, i) => ({
        text: pieces.push(id),
        logprob: logprobs[span[0] + i],
      }));
      const rest = pieces.rest();
      if (rest !== '') tokens.at(-1)!.text += rest;
      return tokens;
    }
    return [{ text: raw.slice(prefix.length), logprob: 0 }];
  }
}
