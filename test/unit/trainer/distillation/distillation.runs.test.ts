// On-policy distillation in complete runs: the policy approaches its teacher; a teacher on this machine and one behind an
// API give the same results; rewards are added or left out; and unusable teachers are refused in one sentence.
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import { PolicyEngine } from '../../../../extension/models/policy-engine';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { readDecoder } from '../../../../extension/models/weights/model-folder';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { document, killAll } from '../../../support/terminal';
import { keepAll, mean, trainHere } from '../../../support/train-here';
import { TinkerPeer } from '../../../support/tinker-peer';
import { groupOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, root, writeModel, type Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
let server: Server;
/** Bodies of the requests to the service. */
let asked: { prompt: number[]; echo: boolean; logprobs: number; max_tokens: number }[] = [];
/** What the service answers instead of log-probs. */
let refusal: { status: number; body: object } | undefined;

const teacherFolder = () => join(workspace.folder, 'models/teacher');

beforeAll(async () => {
  workspace = makeWorkspace();
  writeModel(teacherFolder(), 11);
  const engine = new PolicyEngine();
  await engine.load({
    ...{ modelFolder: teacherFolder(), adapterFolder: null, device: 'cpu', threads: 1, lora: null, frozen: true },
    ...{ rolloutQuantization: 'none', baseQuantization: 'none', checkpointed: false, referenceFolder: null },
    ...{ critic: false, seed: 0, maxPositions: null, cacheFolder: workspace.folder },
  });
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(parts).toString()) as (typeof asked)[number];
      asked.push(body);
      const answer = async (): Promise<object> => {
        const ids = Int32Array.from(body.prompt);
        const mask = Uint8Array.from(ids, (_, t) => Number(t > 0));
        const { logprobs } = await engine.score('actor', [{ ids, mask }], { maxTokens: 4096, maxRows: 1 }, 1);
        return { choices: [{ logprobs: { token_logprobs: [null, ...logprobs[0].slice(1), -1] } }] };
      };
      const send = ({ status, body }: { status: number; body: object }): void =>
        void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      if (refusal) return send(refusal);
      void answer().then(body => send({ status: 200, body }));
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  process.env.TEACHER_KEY = 'sk-of-the-teacher';
});
beforeEach(() => {
  asked = [];
  refusal = undefined;
});
afterAll(async () => {
  delete process.env.TEACHER_KEY;
  await new Promise(resolve => server.close(resolve));
  await killAll(workspace.folder);
  workspace.remove();
  rmSync(installation.cache, { recursive: true, force: true });
});

/** Writes a copy of ragen-tiny to whose weights noise was added. */
async function writeDisturbed(folder: string): Promise<void> {
  const original = join(root, 'media/models/ragen-tiny');
  cpSync(original, folder, { recursive: true });
  const { weights } = await readDecoder(original);
  const noise = new RandomStream(3);
  const tensors = weights.specs.map(({ name, dims }) => {
    const values = weights.view(name);
    const spread = Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);
    return { name, shape: dims, data: values.map(x => x + (spread / 2) * noise.normal()) };
  });
  await writeSafetensors(join(folder, 'model.safetensors'), tensors);
}

const local = ['++workbench.distillation={teacher: models/teacher}'];
const service = (): string[] => [
  `++model_info={big: {provider_name: openai, model_name: big, base_url: 'http://127.0.0.1:${(server.address() as AddressInfo).port}/v1', api_key_env: TEACHER_KEY, max_retries: 1}}`,
  '++workbench.distillation={service: big}',
];
const only = '++workbench.distillation.use_rewards=false';

test('a policy that learns only from its teacher approaches it', async () => {
  await writeDisturbed(join(workspace.folder, 'models/disturbed'));
  const settings = [
    ...['model_path=models/disturbed', '++workbench.distillation={teacher: ragen-tiny, use_rewards: false}'],
    ...[...groupOverrides('train', [4]), 'ppo_mini_batch_size=32', 'actor_rollout_ref.actor.optim.lr=1e-3'],
    ...['agent_proxy.max_turn=2', 'actor_rollout_ref.rollout.response_length=32', 'workbench.threads=1'],
    ...['trainer.save_freq=-1', ...keepAll],
  ];
  const { lines, events } = await trainHere(workspace, settings, 5, undefined, 'quickstart');
  const kl = lines.map(line => Number(line['distillation/kl']));
  expect(kl[0]).toBeGreaterThan(1);
  expect(kl[4]).toBeLessThan(kl[0] / 2);
  expect(kl[4]).toBeLessThan(kl[1]);
  expect(lines.every(line => Number(line['timing_s/teacher']) > 0)).toBe(true);
  expect(events.some(event => /^setting: the teacher is .*ragen-tiny \(0.373 M parameters\)/.test(event))).toBe(true);
}, 180_000);

test('the records of episodes contain log-probs under the teacher', async () => {
  const { lines, episodes } = await trainHere(workspace, [...local, ...keepAll], 1);
  const [found, trained] = [
    episodes.map(({ tokens }) => tokens.teacher_logprobs!),
    episodes.map(({ tokens }) => tokens),
  ];
  found.forEach((row, e) => expect(row.map(x => x !== null)).toEqual(trained[e].mask.map(bit => bit === 1)));
  const scored = found.flat().filter(x => x !== null);
  expect(mean(scored)).toBeCloseTo(Number(lines[0]['distillation/teacher_log_prob']), 4);
});

test('a service gives the same results as the folder, and receives token ids', async () => {
  const rows = async (overrides: string[]) =>
    (await trainHere(workspace, [...overrides, ...keepAll], 2)).lines.map(line => [
      line['distillation/kl'],
      line['distillation/teacher_log_prob'],
      line['actor/pg_loss'],
      line['actor/grad_norm'],
    ]);
  const expected = await rows(local);
  const found = await rows(service());
  found.forEach((row, step) => row.forEach((x, i) => expect(x).toBeCloseTo(Number(expected[step][i]), 4)));
  expect(asked.length).toBe(16); // two steps of eight episodes
  expect(asked[0]).toMatchObject({ model: 'big', echo: true, logprobs: 1, max_tokens: 1, temperature: 1 });
  expect(asked[0].prompt.every(Number.isInteger)).toBe(true);
});

test('rewards and teacher are added; without rewards, only the teacher counts', async () => {
  const of = async (...overrides: string[]) =>
    (await trainHere(workspace, [...keepAll, ...overrides], 1)).lines[0] as Record<string, number>;
  const [plain, both, alone] = [await of(), await of(...local), await of(...local, only)];
  expect(plain['distillation/kl']).toBeUndefined();
  expect(both['distillation/kl']).toBe(alone['distillation/kl']);
  expect(alone['critic/advantages/mean']).toBeCloseTo(-alone['distillation/kl'], 5);
  expect(both['critic/advantages/mean']).toBeCloseTo(
    plain['critic/advantages/mean'] + alone['critic/advantages/mean'],
    5,
  );
});

test("a server of the Tinker API scores a local policy's episodes", async () => {
  const { vocab_size } = JSON.parse(readFileSync(join(teacherFolder(), 'config.json'), 'utf8')) as {
    vocab_size: number;
  };
  const peer = await TinkerPeer.start({ vocabSize: vocab_size });
  const settings = [`++workbench.distillation={server: {url: '${peer.url}'}}`, only, ...keepAll];
  const { lines, events } = await trainHere(workspace, settings, 2);
  expect(lines.map(line => Number.isFinite(line['distillation/kl']))).toEqual([true, true]);
  expect(events).toContain(`setting: the teacher is peer/bigram on ${peer.url}`);
  expect([peer.sent('create_model'), peer.sent('unload_model'), peer.sent('optim_step')]).toEqual([1, 1, 0]);
  await peer.stop();
});

test('a service that returns no log-probs ends the run with one sentence', async () => {
  refusal = { status: 400, body: { error: { message: 'echo is not supported' } } };
  await expect(trainHere(workspace, [...service(), ...keepAll], 1)).rejects.toThrow(
    /^api: the teacher model_info.big refuses a sample \(400 echo is not supported\): use a service/,
  );
  refusal = { status: 200, body: { choices: [{ logprobs: { token_logprobs: [null] } }] } };
  await expect(trainHere(workspace, [...service(), ...keepAll], 1)).rejects.toThrow(
    /^api: the teacher model_info.big returned 1 log-probs for a sample of \d+ tokens/,
  );
});

test.each([
  ['{teacher: models/nowhere}', /^config: workbench.distillation.teacher is .*nowhere.*no config.json/],
  ['{}', /workbench.distillation.teacher is null, and so are service and server/],
  ['{teacher: ragen-tiny, service: big}', /workbench.distillation.service is .*big.*, but teacher is set too: set one/],
  ['{server: {url: here}}', /workbench.distillation.server.url is not the URL of a server: give the server's http/],
  ['{service: larger}', /workbench.distillation.service is "?larger"?, which is not a model of model_info/],
])('%s is refused before a run folder is created', async (value, sentence) => {
  const { code, answer } = await document<{ error: { message: string } }>(workspace.folder, [
    ...['train', '--config-name', 'words', `++workbench.distillation=${value}`],
  ]);
  expect(code).not.toBe(0);
  expect(answer.error.message).toMatch(sentence);
});

test('a teacher with another vocabulary, or with too few positions, is refused before a run folder is created', async () => {
  const file = join(workspace.folder, 'models/random/tokenizer.json');
  const original = readFileSync(file, 'utf8');
  const json = JSON.parse(original) as { model: { vocab: Record<string, number> } };
  const [[token, id]] = Object.entries(json.model.vocab);
  json.model.vocab[`${token}-`] = id;
  delete json.model.vocab[token];
  writeFileSync(file, JSON.stringify(json));
  await expect(trainHere(workspace, local, 1).finally(() => writeFileSync(file, original))).rejects.toThrow(
    `models/teacher, whose vocabulary differs from that of the policy's model: ${JSON.stringify(`${token}-`)} is token ${id} of the policy, but the teacher has no such token`,
  );
  const longer = ['model_path=ragen-tiny', 'actor_rollout_ref.rollout.max_model_len=600'];
  await expect(trainHere(workspace, [...local, ...longer], 1)).rejects.toThrow(
    /^config: workbench.distillation.teacher is .*teacher, which has 512 positions, fewer than max_model_len 600: lower/,
  );
});
