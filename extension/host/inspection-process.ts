// Inspection processes, which load the models of runs: `cli.cjs inspect --stdio` in Node.js, one per workspace folder,
// started by the first request and ended after some minutes without one. JSON-RPC over standard input and output
// (protocol/inspection.ts). None is started in an untrusted workspace. Must not import `vscode`.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { resolve } from 'node:path';
import { ResponseError, type MessageConnection, type RequestType } from 'vscode-jsonrpc/node';
import {
  checkpoints,
  failedCode,
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
  type Rescored,
  type RescoreRequest,
  type WhatIfRequest,
  type WhatIfState,
} from '../protocol/inspection';
import { sendRequest, stdioMessages } from '../protocol/stdio-messages';
import { UserError } from '../protocol/user-error';
import type { CliInvocation } from './cli-process';
import { trainerEnvironment } from './node-runtime';

/** Options of a request. */
export interface Asking {
  signal?: AbortSignal;
  /** Receives the name of the current phase of a long request. */
  onPhase?: (words: string) => void;
  /** Receives the tokens that a policy samples in a what-if episode. */
  onTokens?: (update: {
    session: number;
    turn: number;
    tokens: { id: number; text: string; logprob: number }[];
  }) => void;
}

export interface InspectionNeeds {
  /** Returns the CLI for a workspace folder. */
  terminal(cwd: string): Promise<CliInvocation>;
  /** Returns why no process may start (the workspace is untrusted), or undefined. */
  refusal(): string | undefined;
  /** Receives each line of the process's standard error. */
  log(line: string): void;
  /** Milliseconds without a request after which a process ends. */
  idleMs?: number;
}

const idleMs = 5 * 60_000;
/** Milliseconds within which a process must exit by itself. */
const shutdownTimeoutMs = 3000;

/**
 * Answers requests about all runs, each through the process of its workspace folder. Errors are UserErrors with one
 * sentence.
 */
export class Inspections {
  private readonly processes = new Map<string, Promise<InspectionProcess>>();

  constructor(private readonly needs: InspectionNeeds) {}

  checkpoints = (folder: string): Promise<CheckpointChoice[]> => this.ask(folder, checkpoints, { folder });
  pieces = (folder: string, ids: number[]): Promise<string[]> => this.ask(folder, pieces, { folder, ids });
  legalActions = (episode: EpisodeRef & AcceptedCode, asking?: Asking): Promise<string[]> =>
    this.ask(episode.folder, legalActions, episode, asking);
  rescore = (request: RescoreRequest, asking?: Asking): Promise<Rescored> =>
    this.ask(request.folder, rescore, request, asking);
  whatIf = (request: WhatIfRequest, asking?: Asking): Promise<WhatIfState> =>
    this.ask(request.folder, whatIf, request, asking);
  /** `folder` is the run folder of the what-if episode. */
  whatIfTurn = (
    folder: string,
    move: { session: number; given: GivenAnswer; checkpoint: string | null },
    asking?: Asking,
  ): Promise<WhatIfState> => this.ask(folder, whatIfTurn, move, asking);
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

  private async ask<P, R>(run: string, type: RequestType<P, R, void>, asked: P, asking?: Asking): Promise<R> {
    const refusal = this.needs.refusal();
    if (refusal !== undefined) throw new UserError(refusal);
    const cwd = resolve(run, '..', '..', '..'); // <workspace>/.ragen/runs/<id>
    const at = await this.process(cwd);
    return at.ask(type, asked, asking);
  }

  /** Returns the process of a workspace folder, starting one if none is alive. */
  private async process(cwd: string): Promise<InspectionProcess> {
    const known = this.processes.get(cwd);
    if (known && (await known.catch(() => undefined))?.alive) return known;
    const newer = this.processes.get(cwd);
    if (newer && newer !== known) return newer; // another request has started one meanwhile
    const started = this.needs.terminal(cwd).then(terminal => new InspectionProcess(terminal, this.needs));
    this.processes.set(cwd, started);
    return started;
  }
}

class InspectionProcess {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly connection: MessageConnection;
  private readonly asking = new Set<Asking>();
  /** What-if episodes that wait for the user's turn. */
  private readonly sessions = new Set<number>();
  private readonly idleMs: number;
  private idle: NodeJS.Timeout | undefined;
  private ended: string | undefined;
  private stderrTail = '';

  constructor(terminal: CliInvocation, { log, idleMs: given = idleMs }: InspectionNeeds) {
    this.idleMs = given;
    const { node, cli, cwd } = terminal;
    const env = trainerEnvironment(process.env, node);
    this.child = spawn(node.path, [cli, 'inspect', '--stdio'], { cwd, env, windowsHide: true });
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderrTail = text.trim().split('\n').at(-1) || this.stderrTail;
      for (const line of text.trim().split('\n')) log(line);
    });
    this.child.stdin.on('error', () => undefined); // the `close` event reports the error
    this.child.once('error', error => this.end(`${node.path} does not start: ${error.message}`));
    this.child.once('close', code =>
      this.end(`it ended with exit code ${code}${this.stderrTail && `: ${this.stderrTail}`}`),
    );
    this.connection = stdioMessages(this.child.stdout, this.child.stdin);
    this.connection.onNotification(inspectionPhase, ({ words }) => {
      for (const { onPhase } of this.asking) onPhase?.(words);
    });
    this.connection.onNotification(whatIfTokens, update => {
      for (const { onTokens } of this.asking) onTokens?.(update);
    });
    this.connection.listen();
    this.rest();
  }

  /** Whether the process still accepts requests. */
  get alive(): boolean {
    return this.ended === undefined;
  }

  async ask<P, R>(type: RequestType<P, R, void>, asked: P, asking: Asking = {}): Promise<R> {
    clearTimeout(this.idle);
    this.asking.add(asking);
    try {
      const answer = await sendRequest(this.connection, type, asked, asking.signal);
      this.note(answer);
      asking.signal?.throwIfAborted(); // aborted after it was answered
      return answer;
    } catch (error) {
      if (error instanceof ResponseError && error.code === failedCode) throw new UserError(error.message);
      asking.signal?.throwIfAborted();
      throw new UserError(`The inspection of the run failed: ${this.ended ?? (error as Error).message}`);
    } finally {
      this.asking.delete(asking);
      if (type.method === whatIfEnd.method) this.sessions.delete((asked as { session: number }).session);
      this.rest();
    }
  }

  /** Ends the process and its child processes. */
  stop(): void {
    clearTimeout(this.idle);
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill('SIGKILL'), shutdownTimeoutMs);
    this.child.once('close', () => clearTimeout(timer));
    this.ended ??= 'it was terminated';
  }

  /** A what-if episode that waits for the user keeps the process alive. */
  private note(answer: unknown): void {
    if (typeof answer !== 'object' || answer === null || !('session' in answer)) return;
    const { session, written } = answer as WhatIfState;
    if (written) this.sessions.delete(session);
    else this.sessions.add(session);
  }

  private rest(): void {
    clearTimeout(this.idle);
    if (this.asking.size > 0 || this.sessions.size > 0 || this.ended !== undefined) return;
    this.idle = setTimeout(() => this.stop(), this.idleMs);
    this.idle.unref();
  }

  private end(why: string): void {
    clearTimeout(this.idle);
    this.ended = this.ended === 'it was terminated' ? this.ended : why;
    this.connection.dispose(); // rejects pending requests
  }
}
