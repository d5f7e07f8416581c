// One episode of a program: the program runs until it calls the model, waits for the reply, and runs on. Its own time is
// limited; the time in which it waits for the model does not count. The first call is the state after a reset, each
// further call is the state after the previous reply, and the end of the program ends the episode.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ModelCall, ModelReply } from '../api/model-calls';
import { CallLoop, type CallEvent } from '../api/model-server/call-loop';
import type { CallLine } from '../api/model-server/call-server';
import { programEnvironment } from '../api/program-environment';
import { containerFiles, containerProgram, type ContainerConfig } from './container';
import type { Engine } from './container-engine';
import { formatExit, Program, type Command, type ProgramExit, type ProgramOptions } from './process';
import { exitReward, fileReward, lastLine, scorerReward, type Earned } from './reward';

export interface EpisodeOptions {
  /** null runs the container's own program. */
  command: Command | null;
  /** The container in which the command runs, and what runs it; undefined without a container. */
  contained?: { container: ContainerConfig; engine: Engine };
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
  /** The files of the episode. The folder around it keeps other users out, so a container's user may write here. */
  private readonly files = join(this.scratch, 'files');
  private readonly program: Program;
  private readonly loop: CallLoop<ProgramExit>;
  /** Variables of programs on this machine. */
  private readonly variables: Record<string, string>;

  constructor(
    private readonly line: CallLine,
    private readonly options: EpisodeOptions,
    { seed, member, mode, task }: EpisodeSeed,
  ) {
    mkdirSync(this.files);
    chmodSync(this.files, 0o777);
    if (task !== undefined) writeFileSync(this.file('task.json'), task);
    const { command, contained, folder, pass, env } = options;
    const access = {
      OPENAI_BASE_URL: line.url,
      OPENAI_API_BASE: line.url,
      OPENAI_API_KEY: line.secret,
      ANTHROPIC_BASE_URL: line.address,
      ANTHROPIC_API_KEY: line.secret,
      NO_PROXY: `127.0.0.1,localhost,${line.host}`,
      no_proxy: `127.0.0.1,localhost,${line.host}`,
    };
    const variablesIn = (files: string) => ({
      RAGEN_SEED: String(seed),
      RAGEN_MEMBER: String(member),
      RAGEN_MODE: mode,
      RAGEN_REWARD_FILE: `${files}/reward.json`,
      ...(task !== undefined && { RAGEN_TASK_FILE: `${files}/task.json` }),
      ...(task !== undefined && task.length <= longestVariable && { RAGEN_TASK: task }),
    });
    this.variables = variablesIn(this.files);
    this.program = new Program(
      contained
        ? containerProgram({
            ...contained,
            ...{ command, folder, pass, files: this.files },
            variables: { ...variablesIn(containerFiles), ...access, ...env },
          })
        : this.programOptions(command!, access),
    );
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
    await this.program.end();
    rmSync(this.scratch, { recursive: true, force: true });
  }

  private file(name: string): string {
    return join(this.files, name);
  }

  private programOptions(command: Command, more: Record<string, string>): ProgramOptions {
    const { folder, pass, env } = this.options;
    return { command, folder, environment: { ...programEnvironment(pass), ...this.variables, ...more, ...env } };
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
