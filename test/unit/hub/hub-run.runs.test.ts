// Runs with a hub model, in the real CLI and trainer, against a peer that speaks the hub's protocol: the model is
// fetched before training with progress in the status, later taken from the cache, and stops and refusals give one
// sentence.
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { stop } from '../../../extension/protocol/trainer-link';
import { fileOf, openPeer } from './hub-peer';
import type { Peer, PeerFile } from './hub-peer';
import { document, killAll, ragen, readRun, runsOf, startDetached, statusOf, until } from '../../support/terminal';
import { joinRun } from '../../support/watcher';
import { makeWorkspace } from '../../support/workspace';
import type { Workspace } from '../../support/workspace';

const repo = 'tiny-org/random-qwen2';
const commit = 'abc'.padEnd(40, '7');
const model = `model_path=${repo}`;
const short = ['trainer.total_training_steps=1', 'trainer.test_freq=-1'];
interface Refusal {
  error: { message: string; key?: string };
}

let workspace: Workspace;
let peer: Peer;
const cache = (): string => join(workspace.folder, 'hub cache');

beforeAll(() => {
  workspace = makeWorkspace();
  process.env.HF_HUB_CACHE = cache();
  delete process.env.HF_TOKEN;
});
beforeEach(async () => {
  const folder = join(workspace.folder, 'models/random');
  const files = Object.fromEntries(
    readdirSync(folder).map(name => [name, { content: readFileSync(join(folder, name)) }]),
  );
  peer = await openPeer({ [repo]: { commit, files: { ...files, 'README.md': 'A model.' } } });
  process.env.HF_ENDPOINT = peer.endpoint;
});
afterEach(async () => {
  await killAll(workspace.folder);
  await peer.close();
  rmSync(cache(), { recursive: true, force: true });
  rmSync(join(workspace.folder, '.ragen'), { recursive: true, force: true });
});
afterAll(() => {
  delete process.env.HF_ENDPOINT;
  delete process.env.HF_HUB_CACHE;
  workspace.remove();
});

const weightsFile = (): PeerFile => peer.models[repo].files['model.safetensors'] as PeerFile;
const train = (...overrides: string[]): string[] => ['train', '--config-name', 'words', ...short, ...overrides];
const manifestOf = (run: string) =>
  JSON.parse(readFileSync(join(run, 'manifest.json'), 'utf8')) as {
    config_hash: string;
    config: { model_path: string };
    model: Record<string, unknown>;
    teacher?: Record<string, unknown>;
  };

test('fetches the model before training, records its commit, and trains like the same model in a folder; later runs need no network', async () => {
  const fetched = await document<{ folder: string }>(workspace.folder, train(model));
  expect(fetched.code, fetched.stderr).toBe(0);
  expect(fetched.stderr).toContain(`\nfetched ${repo} (1 MB) at commit ${commit}\n`);
  const { events, metrics, status } = readRun(fetched.answer.folder);
  const reported = events.filter(({ kind }) => kind !== 'memory_plan');
  expect(reported.map(({ kind, message }) => `${kind} ${message}`).slice(0, 2)).toEqual([
    `download fetched ${repo} (1 MB) at commit ${commit}`,
    'state running',
  ]);
  expect(status!.download).toBeUndefined();
  const asked = peer.requests.length;
  await peer.close();

  const again = await document<{ folder: string }>(workspace.folder, train(model));
  expect(again.code, again.stderr).toBe(0);
  expect(again.stderr).not.toMatch(/fetch/i);
  expect(peer.requests.length).toBe(asked);
  const folder = await document<{ folder: string }>(workspace.folder, train('model_path=models/random'));
  const [first, second, local] = [fetched, again, folder].map(({ answer }) => manifestOf(answer.folder));
  expect(first.config.model_path).toBe(repo);
  expect(first.model).toEqual({ ...local.model, path: repo, revision: commit });
  expect(second.model).toEqual(first.model);
  expect(second.config_hash).toBe(first.config_hash);
  for (const { answer } of [again, folder])
    expect(readRun(answer.folder).metrics.map(line => line['actor/pg_loss'])).toEqual(
      metrics.map(line => line['actor/pg_loss']),
    );
});

test("shows the download's progress, can be stopped during it, and continues it on resume", async () => {
  weightsFile().slowly = { bytes: 20_000, ms: 100 };
  const run = await startDetached(workspace.folder, [...short, model]);
  const seen = await until('it is told', () => {
    const reported = statusOf(run)?.download;
    return reported?.file === 'model.safetensors' && reported;
  });
  expect(seen.bytes).toBeLessThan(seen.total);
  expect(statusOf(run)).toMatchObject({ state: 'starting', phase: 'download', step: 0 });
  const watcher = await joinRun(run);
  await watcher.link.sendRequest(stop, null);
  await until('it is stopped', () => statusOf(run)?.state === 'stopped');
  expect(statusOf(run)).toMatchObject({ state: 'stopped', step: 0, phase: 'idle' });
  expect(statusOf(run)!.download).toBeUndefined();
  expect(readRun(run).events.map(({ message }) => message)).toEqual(['stopping', 'stopped']);

  delete weightsFile().slowly;
  const { code, stderr } = await document(workspace.folder, ['resume', basename(run)]);
  expect(code, stderr).toBe(0);
  expect(peer.contents().at(-1)).toMatch(/^model\.safetensors \d+-$/); // the rest only: the stop did not wait for it
  expect(statusOf(run)).toMatchObject({ state: 'finished', step: 1 });
});

test('resumes with the weights of the start, whatever the branch now contains', async () => {
  const { answer } = await document<{ folder: string }>(workspace.folder, train(model));
  peer.models[repo].commit = 'd'.repeat(40);
  peer.models[repo].revisions = [commit];
  peer.models[repo].files['model.safetensors'] = { content: Buffer.from('other weights') };
  const { code, stderr } = await document(workspace.folder, ['resume', basename(answer.folder)]);
  expect(code, stderr).toBe(0);
  expect(manifestOf(answer.folder).model.revision).toBe(commit);
});

test("a teacher is fetched like the policy's model, and a resume uses the weights of the start", async () => {
  const { code, stderr, answer } = await document<{ folder: string }>(
    workspace.folder,
    train(`++workbench.distillation={teacher: ${repo}}`),
  );
  expect(code, stderr).toBe(0);
  expect(stderr).toContain(`\nfetched ${repo} (1 MB) at commit ${commit}\n`);
  expect(manifestOf(answer.folder).teacher).toEqual({
    ...manifestOf(answer.folder).model,
    ...{ path: repo, revision: commit },
  });
  peer.models[repo].commit = 'd'.repeat(40);
  peer.models[repo].revisions = [commit];
  peer.models[repo].files['model.safetensors'] = { content: Buffer.from('other weights') };
  const resumed = await document(workspace.folder, [
    'resume',
    basename(answer.folder),
    'trainer.total_training_steps=2',
  ]);
  expect(resumed.code, resumed.stderr).toBe(0);
  const { events, metrics } = readRun(answer.folder);
  const trained = metrics.filter(({ step }) => step > 0);
  expect(trained.map(line => typeof line['distillation/kl'])).toEqual(['number', 'number']);
  const teachers = events.filter(({ message }) => message.startsWith('the teacher is'));
  expect(teachers.map(({ message }) => message.includes(commit))).toEqual([true, true]);
});

test('refuses before a run is created: a missing model, no network, no tokenizer, unknown architecture', async () => {
  const refused = async (...overrides: string[]): Promise<string> => {
    const { code, stderr, answer } = await document<Refusal>(workspace.folder, train(...overrides));
    expect(code).toBe(1);
    expect(stderr).toBe(`${answer.error.message}\n`);
    expect(runsOf(workspace.folder)).toEqual([]);
    return answer.error.message;
  };
  expect(await refused('model_path=tiny-org/none')).toMatch(
    /has no accessible model tiny-org\/none \(401\): check the name/,
  );
  expect(await refused(`${model}@v2`)).toMatch(/has no revision v2: give one of its branches/);
  const { 'tokenizer.json': tokenizer, ...rest } = peer.models[repo].files;
  peer.models[repo].files = rest;
  expect(await refused(model)).toMatch(/^tiny-org\/random-qwen2: cannot read tokenizer\.json/);
  const config = readFileSync(join(workspace.folder, 'models/random/config.json'), 'utf8').replace('qwen2', 'mamba');
  peer.models[repo].files = { ...rest, 'tokenizer.json': tokenizer, 'config.json': config };
  peer.models[repo].commit = 'e'.repeat(40);
  expect(await refused(model)).toMatch(/^tiny-org\/random-qwen2.config\.json.*mamba/);
  expect(peer.contents()).not.toContain('model.safetensors');
  peer.models[repo].commit = 'f'.repeat(40);
  peer.models[repo].files = { 'adapter_config.json': '{}', 'adapter_model.safetensors': 'x' };
  expect(await refused(model)).toMatch(/which is an adapter, not a model: give the adapter’s base model/);
  await peer.close();
  rmSync(cache(), { recursive: true });
  expect(await refused(model)).toMatch(
    /cannot be reached \(ECONNREFUSED\), and .* does not contain tiny-org\/random-qwen2/,
  );
});

test('reports a download that fails in the run as the run’s error', async () => {
  weightsFile().sent = Buffer.from(weightsFile().content).fill(1, 5000, 6000);
  const { code, answer } = await document<Refusal>(workspace.folder, train(model));
  expect(code).toBe(1);
  expect(answer.error.message).toMatch(/^hub: model\.safetensors of .* arrived damaged twice/);
  const [run] = runsOf(workspace.folder);
  expect(statusOf(run)).toMatchObject({ state: 'failed', error: answer.error.message, phase: 'idle' });
});

test('fetches the model for any command that opens one', async () => {
  const input = workspace.write('input.json', '[{"tokens":[1,2,3]}]');
  const score = ['score', '--model', repo, '--input', input, '--json'];
  const { code, stdout, stderr } = await ragen(workspace.folder, score);
  expect(code, stderr).toBe(0);
  expect(stderr).toMatch(/^Fetching tiny-org\/random-qwen2 \(1 MB\)$/m);
  expect(JSON.parse(stdout)).toHaveLength(1);
  const fetched = join(cache(), 'models--tiny-org--random-qwen2/ragen', commit);
  for (const name of ['config.json', 'model.safetensors'])
    expect(readFileSync(join(fetched, name)).equals(Buffer.from(fileOf(peer.models[repo], name)!.content))).toBe(true);
});
