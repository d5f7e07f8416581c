// Inspection processes, which load the models of runs (`cli.cjs inspect --stdio` in Node.js). Each workspace folder has
// at most one process. The process starts at the first request and ends after `idleMs` without a request. Messages are
// JSON-RPC over standard input and output (protocol/inspection.ts). In an untrusted workspace no process is started.
// Must not import `vscode`.
import { resolve } from 'node:path';
import { ResponseError, type RequestType } from 'vscode-jsonrpc/node';
import {
  checkpoints,
  failedCode,
  heatMaps,
  inspectionPhase,
  legalActions,
  pieces,
  rescore,
  whatIf,
  whatIfEnd,
  whatIfTokens,
  whatIfTurn,
  type AcceptedCode,
  type CheckpointChoice,
  type EpisodeRef,
  type GivenAnswer,
  type HeatMapRequest,
  type Rescored,
  type RescoreRequest,
  type WhatIfRequest,
  type WhatIfState,
} from '../../protocol/inspection';
import type { HeatMaps } from '../../protocol/heat-maps';
import { sendRequest } from '../../node/stdio-messages';
import { UserError } from '../../common/user-error';
import type { CliInvocation } from './cli-command';
import { StdioProcess } from './stdio-process';

/** Options of a request. */
export interface RequestOptions {
  signal?: AbortSignal;
  /** Receives the name of the current phase of a long request. */
  onPhase?: (phase: string) => void;
  /** Receives the tokens that a policy samples in a what-if episode. */
  onTokens?: (update: {
    session: number;
    turn: number;
    tokens: { id: number; text: string; logprob: number }[];
  }) => void;
}

export interface InspectionDependencies {
  /** Returns the CLI for a workspace folder. */
  cliFor(cwd: string): Promise<CliInvocation>;
  /** Returns the reason why no process may start (the workspace is untrusted), or undefined. */
  refusal(): string | undefined;
  /** Receives each line of the process's standard error. */
  log(line: string): void;
  /** Milliseconds without a request after which a process ends. */
  idleMs?: number;
}

const idleMs = 5 * 60_000;

/**
 * Sends each request about a run to the process of the run's workspace folder. Failed requests throw a UserError of one
 * sentence.
 */
export class Inspections {
  private readonly processes = new Map<string, Promise<InspectionProcess>>();

  constructor(private readonly dependencies: InspectionDependencies) {}

  checkpoints = (folder: string): Promise<CheckpointChoice[]> => this.ask(folder, checkpoints, { folder });
  pieces = (folder: string, ids: number[]): Promise<string[]> => this.ask(folder, pieces, { folder, ids });
  legalActions = (episode: EpisodeRef & AcceptedCode, options?: RequestOptions): Promise<string[]> =>
    this.ask(episode.folder, legalActions, episode, options);
  rescore = (request: RescoreRequest, options?: RequestOptions): Promise<Rescored> =>
    this.ask(request.folder, rescore, request, options);
  heatMaps = (request: HeatMapRequest, options?: RequestOptions): Promise<HeatMaps> =>
    this.ask(request.folder, heatMaps, request, options);
  whatIf = (request: WhatIfRequest, options?: RequestOptions): Promise<WhatIfState> =>
    this.ask(request.folder, whatIf, request, options);
  /** Plays the user's next turn. `folder` is the run folder of the what-if episode. */
  whatIfTurn = (
    folder: string,
    move: { session: number; given: GivenAnswer; checkpoint: string | null },
    options?: RequestOptions,
  ): Promise<WhatIfState> => this.ask(folder, whatIfTurn, move, options);
  whatIfEnd = (folder: string, end: { session: number; keep: boolean }): Promise<WhatIfState | null> =>
    this.ask(folder, whatIfEnd, end);

  dispose(): void {
    for (const started of this.processes.values())
      void started.then(
        process => process.stop(),
        () => undefined,
      );
    this.processes.clear();
  }

  private async ask<P, R>(
    run: string,
    type: RequestType<P, R, void>,
    content: P,
    options?: RequestOptions,
  ): Promise<R> {
    const refusal = this.dependencies.refusal();
    if (refusal !== undefined) throw new UserError(refusal);
    const cwd = resolve(run, '..', '..', '..'); // <workspace>/.ragen/runs/<id>
    const at = await this.process(cwd);
    return at.ask(type, content, options);
  }

  /** Returns the process of a workspace folder; starts a process if none is alive. */
  private async process(cwd: string): Promise<InspectionProcess> {
    const known = this.processes.get(cwd);
    if (known && (await known.catch(() => undefined))?.alive) return known;
    const newer = this.processes.get(cwd);
    if (newer && newer !== known) return newer; // a concurrent request has already started a process
    const started = this.dependencies
      .cliFor(cwd)
      .then(invocation => new InspectionProcess(invocation, this.dependencies));
    this.processes.set(cwd, started);
    return started;
  }
}

class InspectionProcess {
  private readonly process: StdioProcess;
  private readonly pending = new Set<RequestOptions>();
  /** What-if episodes that wait for the user's turn. */
  private readonly sessions = new Set<number>();
  private readonly idleMs: number;
  private idle: NodeJS.Timeout | undefined;

  constructor(invocation: CliInvocation, { log, idleMs: given = idleMs }: InspectionDependencies) {
    this.idleMs = given;
    this.process = new StdioProcess(invocation, ['inspect', '--stdio'], log, () => clearTimeout(this.idle));
    const { connection } = this.process;
    connection.onNotification(inspectionPhase, ({ words }) => {
      for (const { onPhase } of this.pending) onPhase?.(words);
    });
    connection.onNotification(whatIfTokens, update => {
      for (const { onTokens } of this.pending) onTokens?.(update);
    });
    connection.listen();
    this.endWhenIdle();
  }

  /** Whether the process still accepts requests. */
  get alive(): boolean {
    return this.process.endReason === undefined;
  }

  async ask<P, R>(type: RequestType<P, R, void>, content: P, options: RequestOptions = {}): Promise<R> {
    clearTimeout(this.idle);
    this.pending.add(options);
    try {
      const answer = await sendRequest(this.process.connection, type, content, options.signal);
      this.trackSession(answer);
      options.signal?.throwIfAborted(); // the request was aborted after the reply arrived
      return answer;
    } catch (error) {
      if (error instanceof ResponseError && error.code === failedCode) throw new UserError(error.message);
      options.signal?.throwIfAborted();
      throw new UserError(`The inspection of the run failed: ${this.process.endReason ?? (error as Error).message}`);
    } finally {
      this.pending.delete(options);
      if (type.method === whatIfEnd.method) this.sessions.delete((content as { session: number }).session);
      this.endWhenIdle();
    }
  }

  /** Ends the process and its child processes. */
  stop(): void {
    clearTimeout(this.idle);
    this.process.stop();
  }

  /** Records the what-if episodes that wait for the user; while such an episode exists, the process is not ended. */
  private trackSession(answer: unknown): void {
    if (typeof answer !== 'object' || answer === null || !('session' in answer)) return;
    const { session, written } = answer as WhatIfState;
    if (written) this.sessions.delete(session);
    else this.sessions.add(session);
  }

  private endWhenIdle(): void {
    clearTimeout(this.idle);
    if (this.pending.size > 0 || this.sessions.size > 0 || !this.alive) return;
    this.idle = setTimeout(() => this.stop(), this.idleMs);
    this.idle.unref();
  }
}
