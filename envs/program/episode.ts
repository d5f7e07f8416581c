// One episode of a program: the program runs until it calls the model, waits for the reply, and runs on. Its own time is
// limited; the time in which it waits for the model does not count. The first call is the state after a reset, each
// further call is the state after the previous reply, and the end of the program ends the episode.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ModelCall, ModelReply } from '../api/model-calls';
import { CallLoop, type CallEvent } from '../api/model-server/call-loop';
import type { CallLine } from '../api/model-server/call-server';
import { formatExit, Program, type Command, type ProgramExit, type ProgramOptions } from './process';
import { exitReward, fileReward, lastLine, scorerReward, type Earned } from './reward';

export interface EpisodeOptions {
  command: Command;
  folder: string;
  pass: readonly string[];
  env: Readonly<Record<string, string>>;
  /** Seconds that the program may run, without the time in which it waits for the model. */
  time_limit: number;
  reward: 'exit' | 'file' | 'scorer';
  scorer: Command;
  scorer_time_limit: number;
}

export interface EpisodeSeed {
  seed: number;
  member: number;
  mode: 'train' | 'val';
  /** JSON text of the task; undefined without tasks. */
  task: string | undefined;
}

/** What the program did next. */
export type ProgramEvent = CallEvent<ProgramExit>;

/** Tasks up to this number of characters are passed in a variable too; the system limits the length of variables. */
const longestVariable = 32_768;

export class ProgramEpisode {
  private readonly scratch = mkdtempSync(join(tmpdir(), 'ragen-program-'));
  private readonly program: Program;
  private readonly variables: Record<string, string>;
  private readonly loop: CallLoop<ProgramExit>;

  constructor(
    private readonly line: CallLine,
    private readonly options: EpisodeOptions,
    { seed, member, mode, task }: EpisodeSeed,
  ) {
    if (task !== undefined) writeFileSync(this.file('task.json'), task);
    this.variables = {
      RAGEN_SEED: String(seed),
      RAGEN_MEMBER: String(member),
      RAGEN_MODE: mode,
      RAGEN_REWARD_FILE: this.file('reward.json'),
      ...(task !== undefined && { RAGEN_TASK_FILE: this.file('task.json') }),
      ...(task !== undefined && task.length <= longestVariable && { RAGEN_TASK: task }),
    };
    const access = {
      OPENAI_BASE_URL: line.url,
      OPENAI_API_BASE: line.url,
      OPENAI_API_KEY: line.secret,
      ANTHROPIC_BASE_URL: line.address,
      ANTHROPIC_API_KEY: line.secret,
      NO_PROXY: '127.0.0.1,localhost',
      no_proxy: '127.0.0.1,localhost',
    };
    this.program = new Program(this.programOptions(options.command, access));
    this.loop = new CallLoop(line, this.program.ended, options.time_limit * 1000);
  }

  /** Answers the call that waits for a reply, if there is one, and runs the program until its next event. */
  next(reply?: ModelReply): Promise<ProgramEvent> {
    return this.loop.next(reply);
  }

  /** Returns the reward of the ended program. */
  async reward(exit: ProgramExit): Promise<Earned> {
    const { reward, scorer, scorer_time_limit } = this.options;
    if (reward === 'exit') return exitReward(exit);
    if (reward === 'file') return fileReward(this.file('reward.json'), exit);
    const output = this.file('output.txt');
    writeFileSync(output, exit.output);
    const variables = { RAGEN_OUTPUT_FILE: output, RAGEN_EXIT_CODE: String(exit.code ?? -1) };
    return scorerReward(this.programOptions(scorer, variables), scorer_time_limit);
  }

  /** Ends the program with all its processes, and removes its files. */
  async close(): Promise<void> {
    this.line.close();
    this.program.kill();
    await this.program.ended.catch(() => undefined);
    rmSync(this.scratch, { recursive: true, force: true });
  }

  private file(name: string): string {
    return join(this.scratch, name);
  }

  private programOptions(command: Command, more: Record<string, string>): ProgramOptions {
    const { folder, pass, env } = this.options;
    return { command, folder, pass, variables: { ...this.variables, ...more, ...env } };
  }
}

/**
 * Returns the error message of a program that made no call. The reason comes first, because long messages are cut; the
 * run's log has the complete output.
 */
export function withoutCall(event: Exclude<ProgramEvent, { call: ModelCall }>, seconds: number): string {
  if (event === 'late') return `No call within ${seconds} s: call OPENAI_BASE_URL, or raise env_config.time_limit`;
  const { end: exit } = event;
  const said = lastLine(exit.errors) || lastLine(exit.output) || 'check that it calls OPENAI_BASE_URL';
  return `No call, and it ${formatExit(exit)}: ${said.slice(0, 400)}`;
}
