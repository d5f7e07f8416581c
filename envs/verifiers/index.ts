// An environment of the verifiers library, played by its server (docs/environments/verifiers.md). The server runs the
// environment's agents; each call that they make to the policy is a state, and the policy's reply is the action. The
// rewards are those of the environment.
import { z } from 'zod';
import { defineEnvironment, MissingDependency, type StepResult } from '../api/environment';
import { callObservation, replyOf } from '../api/model-calls';
import { CallLoop, type CallEvent } from '../api/model-server/call-loop';
import { callServer, type CallLine } from '../api/model-server/call-server';
import { taskOf, tasksFor, type TaskFiles } from '../api/task-lines';
import { earnedBy, isCutOff, valuesOf } from './earned';
import { checkServer, ServedRun, type RunEnd } from './served-run';

const config = z.strictObject({
  server: z
    .string()
    .regex(/^tcp:\/\/[^/\s]+:\d{1,5}$/, 'tcp:// with a host and a port, such as tcp://127.0.0.1:5000')
    .default('tcp://127.0.0.1:5000')
    .describe('address of the environment server of verifiers'),
  tasks: z
    .string()
    .nullable()
    .default(null)
    .describe('JSONL file with the tasks of the taskset, relative to the workspace; the seed chooses a line'),
  val_tasks: z.string().nullable().default(null).describe('JSONL file for validation; null: `tasks` is used'),
  folder: z.string().default('.').describe('folder of the task files, relative to the workspace'),
  agents: z
    .array(z.string().min(1))
    .nullable()
    .default(null)
    .describe('names of the agents whose rewards count; null: all agents that the environment trains'),
  at_once: z
    .int()
    .min(1)
    .max(1024)
    .default(16)
    .describe('maximum number of episodes that the server plays at the same time'),
  connect_timeout: z.number().positive().max(600).default(10).describe('seconds to wait for a connection'),
  time_limit: z
    .number()
    .positive()
    .max(43_200)
    .default(300)
    .describe('seconds that the server may take for an episode, without the time in which it waits for the policy'),
  success_reward: z.number().default(0).describe('an episode counts as a success if its reward is above this value'),
});
/** Returns the tasks for a mode. @throws MissingDependency if there are none */
function requireTasks(files: TaskFiles, mode: 'train' | 'val'): string[] {
  const tasks = tasksFor(files, mode);
  if (tasks) return tasks;
  throw new MissingDependency('has no tasks', 'set env_config.tasks to a file with the tasks of the taskset');
}

export default defineEnvironment({
  name: 'verifiers',
  config,
  modelCalls: true,
  atOnce: ({ at_once }) => at_once,
  instruction: '',
  patience: ({ time_limit, connect_timeout }) => 1000 * (time_limit + connect_timeout + 30),

  async dependencies(config) {
    requireTasks(config, 'train');
    requireTasks(config, 'val');
    await checkServer(config.server, config.connect_timeout * 1000).catch((error: unknown) => {
      const remedy = 'start the server, or correct env_config.server';
      throw new MissingDependency(`cannot use the server ${config.server}, which ${(error as Error).message}`, remedy);
    });
  },

  create(config) {
    const { server, connect_timeout, time_limit, agents, success_reward } = config;
    let episode: { line: CallLine; run: ServedRun; loop: CallLoop<RunEnd> } | undefined;

    const close = (): void => {
      episode?.run.close();
      episode?.line.close();
      episode = undefined;
    };

    /** Converts an event after a reply to the result of the step. */
    const result = (event: CallEvent<RunEnd>): StepResult => {
      const going = { reward: 0, terminated: false, truncated: false, info: {} };
      if (event === 'late') {
        const observation = `The episode was ended, because the server took longer than ${time_limit} s.`;
        return { ...going, observation, truncated: true, info: { success: false } };
      }
      if ('call' in event) return { ...going, observation: callObservation(event.call) };
      const reward = earnedBy(event.end, agents);
      const isCut = isCutOff(event.end);
      return {
        observation: `The environment has ended the episode${event.end.error === undefined ? '' : `: ${event.end.error}`}.`,
        reward,
        terminated: !isCut,
        truncated: isCut,
        info: { ...valuesOf(event.end, agents), success: reward > success_reward },
      };
    };

    return {
      async reset({ seed, mode = 'train' }) {
        close();
        const task = JSON.parse(taskOf(requireTasks(config, mode), seed)) as unknown;
        if (typeof task !== 'object' || task === null || Array.isArray(task))
          throw new Error(`The task of seed ${seed} is not a JSON object: write the fields of the task in each line`);
        const line = (await callServer()).open();
        const request = { task: task as Record<string, unknown>, url: line.url };
        const run = await ServedRun.start(server, request, connect_timeout * 1000).catch((error: unknown) => {
          line.close();
          throw error;
        });
        episode = { line, run, loop: new CallLoop(line, run.ended, time_limit * 1000) };
        try {
          const event = await episode.loop.next();
          if (event === 'late')
            throw new Error(`No call of the policy within ${time_limit} s: raise env_config.time_limit`);
          if ('end' in event)
            throw new Error(`The episode ended without a call of the policy: ${event.end.error ?? 'check the task'}`);
          return { observation: callObservation(event.call) };
        } catch (error) {
          close();
          throw error;
        }
      },

      async step(action) {
        const reply = replyOf(action);
        if (!reply) throw new Error('The action is no reply to a call of the model.');
        if (!episode) throw new Error('The episode is over: reset it.');
        let event: CallEvent<RunEnd> | undefined;
        try {
          event = await episode.loop.next(reply);
          return result(event);
        } finally {
          if (event === undefined || event === 'late' || 'end' in event) close();
        }
      },

      close,
    };
  },
});
