// Measures what the gateway adds to a call of a program, in comparison with an HTTP server that only reads the
// conversation, waits and answers, as every endpoint of a model must. Real programs call from processes of their own, the
// environment process serves them, and conversations grow and are stitched as in training; only the policy is replaced,
// by a wait and fixed ids. Both servers are measured in the same run, with equal programs, conversations and waits.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { callOf, replyAction } from '../../envs/api/model-calls';
import { EnvironmentProcessPool } from '../../extension/environments/client/process-pool';
import { readTokenizer } from '../../extension/models/weights/model-folder';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { installation } from '../../extension/node/installation';
import type { ChatTokenizer } from '../../extension/models/tokenizer/chat-tokenizer';
import { CallContext } from '../../extension/trainer/rollout/call-context';
import { median } from './benchmark';
import type { GatewaySettings } from './definitions';

/** Calls the model several times in one conversation; prints the milliseconds of each call, without a server's wait. */
const program = `import http from 'node:http';
const agent = new http.Agent({ keepAlive: true });
const complete = messages => new Promise((resolve, reject) => {
  const request = http.request(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', agent }, response => {
    let body = '';
    response.on('data', data => (body += data)).on('end', () => resolve(JSON.parse(body)));
  });
  request.on('error', reject).end(JSON.stringify({ messages }));
});
const messages = [{ role: 'system', content: 'You are an agent that walks over a frozen lake.' }];
const times = [];
for (let call = 0; call < Number(process.argv[2]); call++) {
  messages.push({ role: 'user', content: 'Observation ' + call + ': ' + '_'.repeat(200) });
  const start = performance.now();
  const { choices, waited = 0 } = await complete(messages);
  messages.push(choices[0].message);
  times.push(Math.round(100 * (performance.now() - start - waited)) / 100);
}
console.log(JSON.stringify(times));
agent.destroy();
`;

/** Reads a conversation, waits, and answers with a fixed text and the milliseconds that it waited. Prints its port. */
const bareServer = `import http from 'node:http';
const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', data => (body += data)).on('end', () => {
    JSON.parse(body);
    const start = performance.now();
    setTimeout(() => {
      const choices = [{ index: 0, message: { role: 'assistant', content: 'I go Right.' }, finish_reason: 'stop' }];
      const waited = performance.now() - start;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices, waited }));
    }, Number(process.argv[2]) * (0.5 + Math.random()));
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

/** Calls of an episode that are left out, because the other programs are still starting. */
const starting = 4;

/** Median milliseconds that the gateway adds to a call of the bare server. */
export async function gatewayCalls(settings: GatewaySettings): Promise<{ value: number; how: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-gateway-'));
  writeFileSync(join(folder, 'program.mjs'), program);
  writeFileSync(join(folder, 'server.mjs'), bareServer);
  try {
    const bare = settled(await bareTimes(folder, settings));
    const ours = settled(await gatewayTimes(folder, settings));
    const shown = (sorted: readonly number[]): string =>
      `${median(sorted).toFixed(1)} ms (95 % at most ${sorted[Math.floor(0.95 * sorted.length)].toFixed(1)})`;
    return { value: median(ours) - median(bare), how: `gateway ${shown(ours)}, bare server ${shown(bare)}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The times of all calls after the start, in ascending order. */
const settled = (times: readonly (readonly number[])[]): number[] =>
  times.flatMap(each => each.slice(starting)).sort((a, b) => a - b);

/** Resolves to the milliseconds of the calls of each program, with the bare server. */
async function bareTimes(folder: string, { episodes, calls, policyMs }: GatewaySettings): Promise<number[][]> {
  const server = spawn(process.execPath, ['server.mjs', String(policyMs)], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [port] = (await once(server.stdout, 'data')) as [Buffer];
    const env = { ...process.env, OPENAI_BASE_URL: `http://127.0.0.1:${String(port).trim()}/v1` };
    const run = () => promisify(execFile)(process.execPath, ['program.mjs', String(calls)], { cwd: folder, env });
    const ended = await Promise.all(Array.from({ length: episodes }, run));
    return ended.map(({ stdout }) => timesIn(stdout));
  } finally {
    server.kill();
  }
}

/** Resolves to the milliseconds that the gateway needs for the calls of each program, without the policy's. */
async function gatewayTimes(folder: string, { episodes, calls, policyMs }: GatewaySettings): Promise<number[][]> {
  const pool = await EnvironmentProcessPool.start({
    entry: installation.environmentHost,
    variables: process.env,
    stepTimeoutMs: 120_000,
    onNotice: () => undefined,
  });
  try {
    const command = [process.execPath, 'program.mjs', String(calls)];
    const source = join(installation.environments, 'program/index.ts');
    const config = { command, folder, at_once: episodes };
    const { error } = await pool.load([{ tag: 'Agent', env_type: 'program', source, config }]);
    if (error) throw new Error(error.message);
    const tokenizer = readTokenizer(join(installation.models, 'ragen-tiny'));
    const names = Array.from({ length: episodes }, (_, i) => `episode-${i}`);
    return await Promise.all(
      names.map((name, i) => playEpisode(pool, tokenizer, { name, policyMs, stream: new RandomStream(i) })),
    );
  } finally {
    await pool.stop();
  }
}

/**
 * Plays one episode; resolves to the milliseconds that the gateway added to each of its calls. The policy takes between
 * half of `policyMs` and one and a half times as long, so that the calls of all programs do not come at the same time.
 */
async function playEpisode(
  pool: EnvironmentProcessPool,
  tokenizer: ChatTokenizer,
  { name: episode, policyMs, stream }: { name: string; policyMs: number; stream: RandomStream },
): Promise<number[]> {
  const syntax = tokenizer.toolSyntax('auto');
  const context = new CallContext(tokenizer, { max_model_len: 100_000, response_length: 32, syntax });
  const reply = tokenizer.encode('I go Right.');
  const policy: number[] = [];
  const [state] = await pool.reset([{ episode, tag: 'Agent', seed: 1, member: 0, mode: 'train' }]);
  let { observation } = state;
  for (;;) {
    const call = callOf(observation);
    if (!call) break;
    context.prompt(call);
    const start = performance.now();
    await sleep(policyMs * (0.5 + stream.uniform()));
    policy.push(performance.now() - start);
    context.accept({
      ids: [...reply, tokenizer.stopTokenIds[0]],
      logprobs: [...reply, 0].map(() => -1),
      finish: 'stop',
    });
    const [step] = await pool.step([{ episode, actions: [replyAction(context.reply.reply)] }]);
    observation = step.observation;
  }
  await pool.closeEpisodes([episode]);
  return timesIn(observation.split('\n')[1]).map((ms, i) => ms - policy[i]);
}

const timesIn = (text: string): number[] => z.array(z.number()).parse(JSON.parse(text));
