// Measures what the gateway adds to a call of a program: from the request until the call reaches the policy, and from the
// policy's reply until the program has it. Real programs call from processes of their own, the environment process serves
// them, and conversations grow and are stitched as in training; only the policy is replaced, by a wait and fixed ids.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
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

/** Calls the model several times in one conversation, and prints the milliseconds of each call. */
const program = `import http from 'node:http';
const agent = new http.Agent({ keepAlive: true });
const complete = messages => new Promise((resolve, reject) => {
  const request = http.request(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', agent }, response => {
    let body = '';
    response.on('data', data => (body += data)).on('end', () => resolve(JSON.parse(body).choices[0].message));
  });
  request.on('error', reject).end(JSON.stringify({ messages }));
});
const messages = [{ role: 'system', content: 'You are an agent that walks over a frozen lake.' }];
const times = [];
for (let call = 0; call < Number(process.argv[2]); call++) {
  messages.push({ role: 'user', content: 'Observation ' + call + ': ' + '_'.repeat(200) });
  const start = performance.now();
  messages.push(await complete(messages));
  times.push(Math.round(100 * (performance.now() - start)) / 100);
}
console.log(JSON.stringify(times));
agent.destroy();
`;

/** Calls of an episode that are left out, because the other programs are still starting. */
const starting = 4;

/** Median milliseconds that the gateway adds to a call, with the 95th percentile. */
export async function gatewayCalls(settings: GatewaySettings): Promise<{ value: number; how: string }> {
  const { episodes, calls, policyMs } = settings;
  const folder = mkdtempSync(join(tmpdir(), 'ragen-gateway-'));
  writeFileSync(join(folder, 'program.mjs'), program);
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
    const added = await Promise.all(
      names.map((name, i) => playEpisode(pool, tokenizer, { name, policyMs, stream: new RandomStream(i) })),
    );
    const sorted = added.flatMap(times => times.slice(starting)).sort((a, b) => a - b);
    return {
      value: median(sorted),
      how: `95 % of the calls: at most ${sorted[Math.floor(0.95 * sorted.length)].toFixed(1)} ms`,
    };
  } finally {
    await pool.stop();
    rmSync(folder, { recursive: true, force: true });
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
  const times = z.array(z.number()).parse(JSON.parse(observation.split('\n')[1]));
  return times.map((ms, i) => ms - policy[i]);
}
