// An unchanged program as an environment (docs/GATEWAY.md). Each episode starts the program with the address of a local
// server in OPENAI_BASE_URL. Each call that the program makes there is a state, and the policy's reply is the action.
// An episode is a function of its replies only as far as the program itself is.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { defineEnvironment, MissingDependency, type StepResult } from '../api/environment';
import { callObservation, replyOf } from '../api/model-calls';
import { callServer } from '../api/model-server/call-server';
import { taskOf, tasksFor } from '../api/task-lines';
import { containerConfig } from './container';
import { findEngine, type Engine } from './container-engine';
import { ProgramEpisode, withoutCall, type ProgramEvent } from './episode';
import { formatExit } from './process';
import { programVersion } from './version';

const command = z.union([z.string().min(1), z.array(z.string()).min(1)]);

const config = z.strictObject({
  command: command
    .nullable()
    .default(null)
    .describe('program of an episode: a list of the program and its arguments, or a text for the shell'),
  container: containerConfig
    .nullable()
    .default(null)
    .describe('container in which `command` runs, or the image’s own program without `command`; null: none'),
  folder: z.string().default('.').describe('folder in which the program runs, relative to the workspace'),
  env: z.record(z.string(), z.string()).default({}).describe('variables that are added to the program’s environment'),
  pass_env: z
    .array(z.string().regex(/^[A-Za-z_]\w*$/, 'the name of an environment variable'))
    .default([])
    .describe('names of environment variables that the program receives; all others, such as keys, are withheld'),
  tasks: z
    .string()
    .nullable()
    .default(null)
    .describe('JSONL file, relative to `folder`; the seed chooses a line. null: the program uses RAGEN_SEED'),
  val_tasks: z.string().nullable().default(null).describe('JSONL file for validation; null: `tasks` is used'),
  files: z
    .array(z.string())
    .default([])
    .describe('files of the program, relative to `folder`; their checksum is recorded with each turn'),
  at_once: z.int().min(1).max(1024).default(8).describe('maximum number of programs that run at the same time'),
  time_limit: z
    .number()
    .positive()
    .max(43_200)
    .default(120)
    .describe('seconds that a program may run, without the time in which it waits for the policy'),
  reward: z
    .enum(['exit', 'file', 'scorer'])
    .default('exit')
    .describe('reward of an episode: 1 for exit code 0; the file RAGEN_REWARD_FILE; or the output of `scorer`'),
  scorer: command.nullable().default(null).describe('program that prints the reward when the program has ended'),
  scorer_time_limit: z.number().positive().max(3600).default(60).describe('seconds that the scorer may take'),
  success_reward: z
    .number()
    .default(0)
    .describe('an episode counts as a success if its reward is above this value, unless the reward states it'),
});

const pathIn = (folder: string, file: string): string => resolve(folder, file);

export default defineEnvironment({
  name: 'program',
  config,
  modelCalls: true,
  atOnce: ({ at_once }) => at_once,
  instruction: '',
  patience: ({ time_limit, scorer_time_limit }) => 1000 * (time_limit + scorer_time_limit + 30),
  async dependencies(config) {
    const { command, container, folder, reward, scorer } = config;
    if (command === null && container === null)
      throw new MissingDependency('has no program', 'set env_config.command to the command of your program');
    if (reward === 'scorer' && scorer === null)
      throw new MissingDependency('has no scorer', 'set env_config.scorer, or set env_config.reward to exit or file');
    if (!existsSync(folder))
      throw new MissingDependency(`cannot run in ${folder}, which does not exist`, 'correct env_config.folder');
    const missing = config.files.find(file => !existsSync(pathIn(folder, file)));
    if (missing !== undefined)
      throw new MissingDependency(`does not find its file ${missing} in ${folder}`, 'correct env_config.files');
    const unknown = container?.mounts.find(({ source }) => !existsSync(pathIn(folder, source)));
    if (unknown !== undefined)
      throw new MissingDependency(
        `cannot mount ${pathIn(folder, unknown.source)}, which does not exist`,
        'correct env_config.container.mounts',
      );
    tasksFor(config, 'train');
    tasksFor(config, 'val');
    if (container) await findEngine(container.image, container.engine);
  },

  create(config) {
    const { folder, files, time_limit, success_reward } = config;
    let episode: ProgramEpisode | undefined;
    let version: string | undefined;
    let engine: Engine | undefined;

    /** Converts an event after a reply to the result of the step. */
    const result = async (event: ProgramEvent): Promise<StepResult> => {
      const info = { ...(version !== undefined && { program: version }) };
      const nothing = { reward: 0, terminated: false, truncated: false, info };
      if (event === 'late') {
        const observation = `The program was ended, because it ran longer than ${time_limit} s.`;
        return { ...nothing, observation, truncated: true, info: { ...info, success: false } };
      }
      if ('call' in event) return { ...nothing, observation: callObservation(event.call) };
      const { reward, success = reward > success_reward } = await episode!.reward(event.end);
      const said = event.end.output.trim().slice(-2000);
      const observation = `The program ${formatExit(event.end)}.${said ? `\n${said}` : ''}`;
      return { observation, reward, terminated: true, truncated: false, info: { ...info, success } };
    };

    return {
      async reset({ seed, member = 0, mode = 'train' }) {
        await episode?.close();
        version = programVersion(files.map(file => pathIn(folder, file)));
        const lines = tasksFor(config, mode);
        const server = await callServer();
        const { container } = config;
        if (container) engine ??= await findEngine(container.image, container.engine);
        const options = {
          ...{ ...config, pass: config.pass_env, scorer: config.scorer ?? '' },
          ...(container && engine && { contained: { container, engine } }),
        };
        episode = new ProgramEpisode(server.open(container?.host), options, {
          ...{ seed, member, mode },
          task: lines && taskOf(lines, seed),
        });
        const event = await episode.next();
        if (event === 'late' || !('call' in event)) {
          await episode.close();
          throw new Error(withoutCall(event, time_limit));
        }
        return { observation: callObservation(event.call) };
      },

      async step(action) {
        const reply = replyOf(action);
        if (!reply) throw new Error('The action is no reply to a call of the model.');
        const event = await episode!.next(reply);
        if (event !== 'late' && 'call' in event) return result(event);
        try {
          return await result(event);
        } finally {
          await episode!.close(); // also if the reward cannot be read
        }
      },

      close: async () => episode?.close(),
    };
  },
});
