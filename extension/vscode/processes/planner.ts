// The planning process (`cli.cjs plan --stdio` in Node.js), which checks configurations and plans runs. One process
// serves all folders of the window. It starts when a form opens, is replaced if it dies, ends after `idleMs` without a
// request, and ends with the window. In an untrusted workspace no process is started. Must not import `vscode`.
import { ResponseError, type RequestType } from 'vscode-jsonrpc/node';
import { UserError } from '../../common/user-error';
import { sendRequest } from '../../node/stdio-messages';
import type { RunEstimate } from '../../protocol/new-run-page';
import {
  checkConfig,
  failedCode,
  planConfig,
  type ConfigQuestion,
  type PlanFailure,
  type PlanQuestion,
} from '../../protocol/planning';
import { ConfigError, type CliInvocation } from './cli-command';
import { StdioProcess } from './stdio-process';

export interface PlannerDependencies {
  /** Returns the CLI for a workspace folder; throws a UserError in an untrusted workspace. */
  cliFor(cwd: string): Promise<CliInvocation>;
  /** Receives each line of the process's standard error. */
  log(line: string): void;
  /** Milliseconds without a request after which the process ends. */
  idleMs?: number;
}

const idleMs = 15 * 60_000;

export class Planner {
  private started: Promise<StdioProcess> | undefined;
  private idle: NodeJS.Timeout | undefined;
  private pending = 0;

  constructor(private readonly dependencies: PlannerDependencies) {}

  /** Starts the process, so that the first request need not wait for it. A failure is reported by the first request. */
  warm(cwd: string): void {
    this.process(cwd).catch(() => undefined);
  }

  /** Returns the resolved configuration. Throws a ConfigError with all problems, or a UserError. */
  check = (question: ConfigQuestion): Promise<{ config: Record<string, unknown> }> => this.ask(checkConfig, question);

  /** Returns the resolved configuration and the plan of its run. Throws a ConfigError or a UserError. */
  plan = (question: PlanQuestion): Promise<{ config: Record<string, unknown>; run: RunEstimate }> =>
    this.ask(planConfig, question);

  /** Ends the process; the next request starts another, with the environment variables of that time. */
  restart(): void {
    clearTimeout(this.idle);
    void this.started?.then(
      process => process.stop(),
      () => undefined,
    );
    this.started = undefined;
  }

  dispose(): void {
    this.restart();
  }

  /** Sends a request. If the process dies before it answers, asks a second process. */
  private async ask<Q extends ConfigQuestion, R>(type: RequestType<Q, R, PlanFailure>, question: Q): Promise<R> {
    this.pending++;
    clearTimeout(this.idle);
    try {
      for (let attempt = 1; ; attempt++) {
        const process = await this.process(question.workspace);
        try {
          return await sendRequest(process.connection, type, question);
        } catch (error) {
          if (error instanceof ResponseError && error.code === failedCode) throw failureOf(error);
          if (attempt === 2)
            throw new UserError(
              `The check of the configuration failed: ${process.endReason ?? (error as Error).message}`,
            );
        }
      }
    } finally {
      this.pending--;
      if (this.pending === 0) this.endWhenIdle();
    }
  }

  private async process(cwd: string): Promise<StdioProcess> {
    const known = this.started;
    if (known) {
      const process = await known.catch(() => undefined);
      if (process && process.endReason === undefined) return process;
      if (this.started && this.started !== known) return this.started; // a concurrent request has started a process
    }
    const { cliFor, log } = this.dependencies;
    this.started = cliFor(cwd).then(invocation => {
      const process = new StdioProcess(invocation, ['plan', '--stdio'], log);
      process.connection.listen();
      return process;
    });
    return this.started;
  }

  private endWhenIdle(): void {
    this.idle = setTimeout(() => this.restart(), this.dependencies.idleMs ?? idleMs);
    this.idle.unref();
  }
}

function failureOf(error: ResponseError<unknown>): UserError {
  const { problems = [] } = (error.data ?? {}) as Partial<PlanFailure>;
  return problems.length > 0 ? new ConfigError(problems) : new UserError(error.message);
}
