// verifiers' own command `vf-eval` evaluates environments of `ragen env serve` with the configuration of the guide: its
// rewards are those that our environments give for the same replies. The model is a scripted service, or `ragen gateway`.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Environment } from '../../envs/api/environment';
import countdown from '../../envs/countdown/index';
import sokoban from '../../envs/sokoban/index';
import type { CallRecord } from '../../extension/cli/models/gateway-calls';
import { root } from '../support/workspace';
import { installed, program, variables } from './library';

interface Message {
  role: string;
  content: string;
}
/** The parts of a line of traces.jsonl, verifiers' record of an episode, that the tests read. */
interface Evaluated {
  ok: boolean;
  errors: { type: string; message: string }[];
  traces: { task: { data: { reset: { seed: number } } }; rewards: { openenv_reward?: { score: number } } }[];
}

let folder: string;
let environments: string;
/** Each has a group of its own, and is killed with the processes that it started. */
const processes: ChildProcess[] = [];
const services: Server[] = [];

/** Starts `ragen …`; resolves to the JSON document that it prints when it is ready. */
async function started<T>(...args: string[]): Promise<T> {
  const child = spawn(process.execPath, [join(root, 'dist/cli.cjs'), ...args, '--json'], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  processes.push(child);
  return new Promise((done, failed) => {
    createInterface(child.stdout).once('line', line => done(JSON.parse(line) as T));
    child.once('exit', code => failed(new Error(`ragen ${args[0]} ended with exit code ${code}`)));
  });
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-served-'));
  if (!installed) return;
  environments = (await started<{ url: string }>('env', 'serve', 'sokoban', 'countdown', '--port', '0')).url;
});
afterAll(() => {
  for (const { pid, exitCode, signalCode } of processes)
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL');
  for (const service of services) service.close();
  rmSync(folder, { recursive: true, force: true });
});

/**
 * Starts a service with OpenAI's chat completions; resolves to its address. The first observation of a conversation
 * chooses its script, and the number of earlier replies the reply of the script.
 */
async function scripted(scripts: ReadonlyMap<string, readonly string[]>): Promise<string> {
  const service = createServer((request, response) => {
    void (async () => {
      const { messages } = (await json(request)) as { messages: Message[] };
      const { observation } = JSON.parse(messages[0].content) as { observation: { text: string } };
      const script = scripts.get(observation.text);
      if (!script) {
        response.statusCode = 400; // vf-eval does not try these again
        response.end(JSON.stringify({ error: { message: `no script for ${observation.text}` } }));
        return;
      }
      const content = script[messages.filter(({ role }) => role === 'assistant').length];
      const message = { role: 'assistant', content };
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({
          ...{ id: 'chat', object: 'chat.completion', created: 0, model: 'scripted' },
          choices: [{ index: 0, message, finish_reason: 'stop' }],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        }),
      );
    })();
  });
  services.push(service);
  await new Promise<void>(done => service.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(service.address() as AddressInfo).port}/v1`;
}

/** Runs `vf-eval` with the guide's configuration for another environment, other seeds and another model; sorted by seed. */
async function evaluate(environment: string, seeds: readonly number[], model: string): Promise<Evaluated[]> {
  const guide = readFileSync(join(root, 'docs/environments/verifiers.md'), 'utf8');
  const changes = [
    ['"http://127.0.0.1:8000/frozen_lake"', `"${environments}/${environment}"`],
    ['[{seed = 1}, {seed = 2}]', `[${seeds.map(seed => `{seed = ${seed}}`).join(', ')}]`],
    ['"https://api.openai.com/v1"', `"${model}"`],
    ['"null"', '"one_call_v1"'], // the harness null installs packages for each evaluation
  ];
  let configuration = /```toml\n(.*?)```/s.exec(guide)![1];
  for (const [ours, theirs] of changes) {
    expect(configuration).toContain(ours);
    configuration = configuration.replace(ours, theirs);
  }
  const name = `${environment}-${seeds.join('-')}`;
  writeFileSync(join(folder, `${name}.toml`), configuration);
  const child = spawn(program('vf-eval'), ['@', `${name}.toml`, '--no-rich', '--run.dir', name], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...variables(folder), OPENAI_API_KEY: 'none' },
  });
  processes.push(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (said += part.toString()));
  const code = await new Promise(done => child.once('close', done));
  if (code !== 0) throw new Error(`vf-eval ended with exit code ${String(code)}: ${said}`);
  return readFileSync(join(folder, 'outputs', name, 'traces.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Evaluated)
    .sort((a, b) => seedOf(a) - seedOf(b));
}
const seedOf = ({ traces: [trace] }: Evaluated): number => trace.task.data.reset.seed;
const rewardOf = ({ traces: [trace] }: Evaluated): number | undefined => trace.rewards.openenv_reward?.score;

/** Plays actions from the beginning of an episode; returns its first observation, the sum of the rewards, and its end. */
async function played(environment: Environment, seed: number, actions: readonly (number | string)[]) {
  const { observation } = await environment.reset({ seed });
  let sum = 0;
  let ended = false;
  for (const action of actions) {
    const { reward, terminated } = await environment.step(action);
    sum += reward;
    ended = terminated;
  }
  return { observation: observation as string, sum, ended };
}

describe.skipIf(!installed)('verifiers evaluates environments of ragen env serve', () => {
  test('moves: solved, stopped by an empty reply, and ended by a reply that is no move', async () => {
    const config = sokoban.config.parse({});
    const room = sokoban.create(config);
    const { action_lookup: names } = config;
    await room.reset({ seed: 1 });
    const moves = (await room.solve!())!;
    const plans = [moves, [1, 2, 3], [4, 4]];
    const here: Awaited<ReturnType<typeof played>>[] = [];
    for (const [i, plan] of plans.entries()) here.push(await played(room, i + 1, plan));
    const ends = [[], [''], ['Fly']];
    const model = await scripted(
      new Map(
        plans.map((plan, i) => [
          here[i].observation,
          [...plan.map(move => names[String(move) as keyof typeof names]), ...ends[i]],
        ]),
      ),
    );
    const [solved, stopped, wrong] = await evaluate('sokoban', [1, 2, 3], model);
    expect(here.map(({ ended }) => ended)).toEqual([true, false, false]);
    expect(here[0].sum).toBeGreaterThan(5);
    expect([solved, stopped].map(rewardOf)).toEqual([here[0].sum, here[1].sum]);
    expect([solved, stopped].map(({ ok }) => ok)).toEqual([true, true]);
    expect([wrong.ok, rewardOf(wrong)]).toEqual([false, undefined]);
    expect(wrong.errors[0].message).toContain('action is "Fly": use one of Up, Down, Left, Right');
  });

  test('texts: a right answer, a wrong value, a wrong format and a number', async () => {
    const problems = countdown.create(countdown.config.parse({}));
    const replies: string[] = [];
    const here: Awaited<ReturnType<typeof played>>[] = [];
    for (const seed of [1, 2, 3, 4]) {
      const { observation } = await problems.reset({ seed });
      const [solution] = (await problems.solve!()) as [string];
      const numbers = /\[(.*)\]/.exec(observation as string)![1].split(', ');
      replies.push([solution, numbers.join(' * '), 'I do not know.', '2.5'][seed - 1]);
      here.push(await played(problems, seed, [replies[seed - 1]]));
    }
    expect(here.map(({ sum }) => sum)).toEqual([1, 0.1, 0, 0]);
    const model = await scripted(new Map(here.map(({ observation }, i) => [observation, [replies[i]]])));
    const evaluated = await evaluate('countdown', [1, 2, 3, 4], model);
    expect(evaluated.map(({ errors }) => errors)).toEqual([[], [], [], []]);
    expect(evaluated.map(rewardOf)).toEqual([1, 0.1, 0, 0]);
  });

  test('replies of ragen-tiny, which ragen gateway serves', async () => {
    const { url, log } = await started<{ url: string; log: string }>(
      ...['gateway', '--model', 'ragen-tiny', '--threads', '1', '--max-new-tokens', '32', '--log', 'calls.jsonl'],
    );
    const evaluated = await evaluate('countdown', [5, 6], url);
    const calls = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as CallRecord);
    const problems = countdown.create(countdown.config.parse({}));
    expect(evaluated.map(({ errors }) => errors)).toEqual([[], []]);
    for (const episode of evaluated) {
      const { observation } = await problems.reset({ seed: seedOf(episode) });
      const [call, ...others] = calls.filter(({ added }) => added.includes(JSON.stringify(observation)));
      expect(others).toEqual([]);
      expect(rewardOf(episode)).toBe((await played(problems, seedOf(episode), [call.text])).sum);
    }
  });
});
