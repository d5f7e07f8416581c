// All operations of an inspection process, called by the editor over standard input or by the CLI. The object keeps
// opened runs with their tokenizers, one model, and the what-if sessions that are waiting for the user.
import type {
  AcceptedCode,
  CheckpointChoice,
  EpisodeRef,
  GivenAnswer,
  HeatMapRequest,
  Rescored,
  RescoreRequest,
  WhatIfRequest,
  WhatIfState,
} from '../../protocol/inspection';
import type { HeatMaps } from '../../protocol/heat-maps';
import { UserError } from '../../common/user-error';
import { tokenPieces } from '../../models/tokenizer/token-pieces';
import { RunFolder } from '../store/run-folder';
import { heatMapsOf, mappedTurns } from './heat-maps';
import { InspectedRun } from './inspected-run';
import { ModelHolder } from './inspection-model';
import { actionsOf, openReplayed } from './replayed-environment';
import { rescored } from './rescoring';
import { WhatIfSession } from './what-if-session';

export interface InspectorListener {
  phase(message: string): void;
  whatIfTokens(session: number, turn: number, tokens: { id: number; text: string; logprob: number }[]): void;
}

export class Inspector {
  private readonly runs = new Map<string, InspectedRun>();
  private readonly models: ModelHolder;
  private readonly sessions = new Map<number, WhatIfSession>();
  private nextSession = 1;

  constructor(
    threads: number,
    private readonly listener: InspectorListener,
  ) {
    this.models = new ModelHolder(threads, message => listener.phase(message));
  }

  async checkpoints(folder: string): Promise<CheckpointChoice[]> {
    return this.run(folder).checkpoints();
  }

  async pieces(folder: string, ids: readonly number[]): Promise<string[]> {
    return tokenPieces(await this.run(folder).tokenizer(), ids);
  }

  /**
   * Scores the tokens of a stored episode under a checkpoint.
   * @throws UserError, or the abort reason of `signal`
   */
  async rescore(request: RescoreRequest, signal?: AbortSignal): Promise<Rescored> {
    const run = this.run(request.folder);
    const episode = run.episode(request);
    const checkpoint = run.checkpoint(request.checkpoint);
    return this.models.use(run, checkpoint, signal, model => {
      this.listener.phase(`scoring ${episode.id} under ${checkpoint.name}`);
      return rescored(run, episode, request, model);
    });
  }

  /**
   * Computes heat maps over the pictures of a stored episode.
   * @throws UserError, or the abort reason of `signal`
   */
  async heatMaps(request: HeatMapRequest, signal?: AbortSignal): Promise<HeatMaps> {
    const run = this.run(request.folder);
    const episode = run.episode(request);
    const turns = mappedTurns(episode, request.turn);
    const { checkpoint: name } = request;
    const checkpoint = name === undefined ? run.nearestCheckpoint(episode) : run.checkpoint(name);
    return this.models.use(run, checkpoint, signal, model =>
      heatMapsOf(run, episode, turns, request, model, turn => {
        signal?.throwIfAborted();
        this.listener.phase(`mapping turn ${turn} of ${episode.id} under ${checkpoint.name}`);
      }),
    );
  }

  async legalActions(ref: EpisodeRef & AcceptedCode): Promise<string[]> {
    const run = this.fresh(ref.folder);
    const episode = run.episode(ref);
    const environment = await openReplayed(run, episode, ref.accepted);
    try {
      return await actionsOf(environment, episode);
    } finally {
      await environment.process.stop();
    }
  }

  /** Opens a what-if and plays until the episode is over or the user's next turn is needed. */
  async whatIf(request: WhatIfRequest, signal?: AbortSignal): Promise<WhatIfState> {
    const run = this.fresh(request.folder);
    const origin = run.episode(request);
    if (request.checkpoint !== null) run.checkpoint(request.checkpoint);
    const tokenizer = await run.tokenizer();
    this.listener.phase(`opening ${origin.tag}`);
    const environment = await openReplayed(run, origin, request.accepted);
    const session = this.nextSession++;
    let opened: WhatIfSession;
    try {
      opened = new WhatIfSession(request, {
        session,
        run,
        tokenizer,
        environment,
        origin,
        policy: name => work => this.models.use(run, run.checkpoint(name), signal, ({ engine }) => work(engine)),
        onTokens: (turn, tokens) => this.listener.whatIfTokens(session, turn, tokens),
      });
    } catch (error) {
      await environment.process.stop();
      throw error;
    }
    this.sessions.set(session, opened);
    return this.settled(session, opened, opened.currentState(), signal);
  }

  async whatIfTurn(
    asked: { session: number; given: GivenAnswer; checkpoint: string | null },
    signal?: AbortSignal,
  ): Promise<WhatIfState> {
    const opened = this.session(asked.session);
    return this.settled(asked.session, opened, opened.playTurn(asked), signal);
  }

  async whatIfEnd(session: number, keep: boolean): Promise<WhatIfState | null> {
    const opened = this.session(session);
    const kept = keep ? await opened.writePlayed() : null;
    await this.end(session, opened);
    return kept;
  }

  async close(): Promise<void> {
    await Promise.all([...this.sessions].map(([session, opened]) => this.end(session, opened)));
    await this.models.close();
  }

  /**
   * Returns the next state of a what-if session. Closes the session when its episode is over, or if the request fails
   * or is cancelled.
   */
  private async settled(
    session: number,
    opened: WhatIfSession,
    state: Promise<WhatIfState>,
    signal: AbortSignal | undefined,
  ): Promise<WhatIfState> {
    const stop = (): void => void this.end(session, opened);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      const stands = await state;
      if (stands.written) await this.end(session, opened);
      return stands;
    } catch (error) {
      await this.end(session, opened);
      throw error;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  private async end(session: number, opened: WhatIfSession): Promise<void> {
    if (this.sessions.delete(session)) await opened.close();
  }

  private session(number: number): WhatIfSession {
    const found = this.sessions.get(number);
    if (!found) throw new UserError('what if: this what-if is closed: start a new one');
    return found;
  }

  /**
   * Returns the run, and opens it again if its manifest has changed. An earlier manifest must not be used, because the
   * user accepts the code of the current files only.
   */
  private fresh(folder: string): InspectedRun {
    const known = this.runs.get(folder);
    if (known?.folder.manifestSha256 !== RunFolder.open(folder).manifestSha256) this.runs.delete(folder);
    return this.run(folder);
  }

  private run(folder: string): InspectedRun {
    const run = this.runs.get(folder) ?? InspectedRun.open(folder);
    this.runs.set(folder, run);
    return run;
  }
}
