// docs/environments/rewards.md: its rewards file type-checks and scores the environment of the guide, its configuration
// loads. The example in examples/ trains, and its components are in metrics, episodes and the trace of an episode.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TypeCheckService } from '../../../extension/environments/runtime/build/type-check';
import { environmentSpecs } from '../../../extension/environments/client/environment-specs';
import { loadConfig } from '../../../extension/trainer/config/load-config';
import { traceOf } from '../../../extension/vscode/traces/trace-text';
import { startPeer } from '../trainer/evaluation/api-peer';
import { presetFolder } from '../trainer/config/presets';
import { root, startProcess } from '../../support/bundles';
import { document, killAll, readRun } from '../../support/terminal';
import { groupOverrides, stepOverrides } from '../../support/tiny-overrides';

const blocks = (page: string, language: string): string[] => {
  const text = readFileSync(join(root, 'docs/environments', page), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))].map(([, code]) => code);
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-rewards-'));
  cpSync(join(root, 'examples'), folder, { recursive: true, filter: path => basename(path) !== '.ragen' });
  mkdirSync(join(folder, 'envs'), { recursive: true });
  writeFileSync(join(folder, 'envs/guess.ts'), blocks('writing-your-own.md', 'ts')[0]);
  writeFileSync(join(folder, 'envs/guess.rewards.ts'), blocks('rewards.md', 'ts')[0]);
  writeFileSync(join(folder, 'config/guess.yaml'), blocks('rewards.md', 'yaml')[0]);
});
afterAll(async () => {
  await killAll(folder);
  rmSync(folder, { recursive: true });
});

test('the rewards file of the guide has no type errors, and a wrong name is one', () => {
  const service = new TypeCheckService(ts, root);
  const file = join(folder, 'envs/guess.rewards.ts');
  expect(service.check(file).problems).toEqual([]);
  expect(service.check(join(folder, 'envs/island.short.rewards.ts')).problems).toEqual([]);
  const wrong = join(folder, 'envs/wrong.rewards.ts');
  writeFileSync(wrong, readFileSync(file, 'utf8').replace('{ halving: names', '{ halvng: names'));
  expect(service.check(wrong).problems.map(({ message }) => message)).toEqual([expect.stringContaining('halvng')]);
});

test('the configuration of the guide loads, and its rewards file scores the environment', async () => {
  const { config } = loadConfig({
    configName: 'guess',
    overrides: [],
    presetFolders: [join(folder, 'config'), presetFolder],
    workspace: folder,
  });
  expect(config.custom_envs.Guess.rewards).toMatchObject({ weights: { halving: 0.2 }, repetition: { size: 3 } });
  const [spec] = environmentSpecs(['Guess'], config.custom_envs, join(root, 'envs'), folder);
  const { running } = await startProcess(join(root, 'dist/environment-host.cjs'), { stepTimeoutMs: 20_000 });
  try {
    const { error } = await running.load([spec]);
    expect(error).toBeUndefined();
    await running.reset([{ episode: 'e', tag: 'Guess', seed: 1, member: 0, mode: 'train' }]);
    const turn = { turn: 1, state: '', raw: '', answer: '5', parsed: ['5'], finish: 'stop' as const };
    for (const [thought, halving] of [
      ['I try 5', 1],
      ['I try it', 0],
      [null, 0],
    ] as const) {
      const [step] = await running.step([{ episode: 'e', actions: ['5'], score: { turn: { ...turn, thought } } }]);
      expect(step.components ?? step.error?.message).toEqual({ halving });
    }
  } finally {
    await running.stop();
  }
});

test('the example trains with its components', async () => {
  const groups = [...groupOverrides('train', [2], 4), ...groupOverrides('val', [4])];
  const args = [
    'train',
    '--config-name',
    'island-rewards',
    'workbench.threads=2',
    ...groups,
    ...stepOverrides(2),
    'trainer.test_freq=2',
    'ppo_mini_batch_size=4',
    'micro_batch_size_per_gpu=4',
  ];
  const { answer, code, stderr } = await document<{ folder: string }>(folder, args);
  expect(code, stderr).toBe(0);
  const { metrics, episodes } = readRun(answer.folder);
  const names = ['grounding', 'repetition', 'thought_length', 'wordiness'];
  for (const name of names)
    for (const side of ['train', 'val-env'])
      expect(metrics.some(line => Number.isFinite(line[`${side}/Island/components/${name}`]))).toBe(true);
  const weights: Record<string, number> = {
    wordiness: -0.01,
    directness: 0.5,
    thought_length: 0,
    grounding: 0,
    repetition: -0.5,
  };
  const weighed = (values: Record<string, number> = {}) =>
    Object.entries(values).reduce((sum, [name, value]) => sum + weights[name] * value, 0);
  for (const episode of episodes) {
    const sum = [...episode.turns.map(({ components }) => components), episode.components].map(weighed);
    expect(episode.component_reward).toBeCloseTo(
      sum.reduce((a, b) => a + b, 0),
      9,
    );
    expect(episode.score).toBeCloseTo(episode.reward + episode.penalty + episode.component_reward!, 9);
    expect(episode.components?.directness !== undefined).toBe(episode.success);
    for (const { components, thought } of episode.turns)
      expect(Object.keys(components!).sort()).toEqual(names.filter(name => name !== 'wordiness' || thought !== null));
  }
  expect(episodes.length).toBeGreaterThan(4);
  expect(traceOf(episodes[0], 'run', null).text).toMatch(/^components before weights: wordiness \+/m);
}, 300_000);

test('the example with a judge trains: each episode is paid for once, replies without a score are missing, no file has the key', async () => {
  const peer = await startPeer();
  let asked = 0;
  peer.answer = () => ({ text: asked++ % 5 === 4 ? 'I cannot say.' : `Score: ${asked % 11}` });
  process.env.RAGEN_TEST_JUDGE_KEY = peer.key;
  try {
    const judge = [`model_info.judge.base_url=${peer.url}/v1`, 'model_info.judge.api_key_env=RAGEN_TEST_JUDGE_KEY'].map(
      text => `+${text}`,
    );
    const groups = [...groupOverrides('train', [2], 3), ...groupOverrides('val', [2])];
    const small = [
      ...groups,
      'ppo_mini_batch_size=4',
      'micro_batch_size_per_gpu=4',
      'trainer.save_freq=2',
      'trainer.test_freq=2',
    ];
    const args = [
      'train',
      '--config-name',
      'island-judge',
      'workbench.threads=2',
      ...judge,
      ...small,
      ...stepOverrides(2),
    ];
    const { answer, code, stderr } = await document<{ folder: string; run: string }>(folder, args);
    expect(code, stderr).toBe(0);
    const { metrics, episodes } = readRun(answer.folder);
    const requests = metrics.reduce((sum, line) => {
      const [train = 0, val = 0] = ['train', 'val-env'].map(side => line[`${side}/Island/judges/clarity/requests`]);
      return sum + Number(train) + Number(val);
    }, 0);
    expect(requests).toBe(peer.requests.length);
    const judged = episodes.filter(({ components }) => components?.clarity !== undefined);
    expect(judged.length).toBeGreaterThan(episodes.length / 2);
    expect(judged.length).toBeLessThan(episodes.length); // some replies had no score
    for (const { judgements, components } of judged) expect(judgements!.clarity[0].score).toBe(components!.clarity);
    for (const file of ['judgements.jsonl', 'manifest.json', 'events.jsonl', 'trainer.log'])
      expect(readFileSync(join(answer.folder, file), 'utf8')).not.toContain(peer.key);
  } finally {
    delete process.env.RAGEN_TEST_JUDGE_KEY;
    await peer.close();
  }
}, 300_000);

test('an unknown component ends the run at its start with one sentence', async () => {
  const args = ['train', '--config-name', 'island-rewards', '+custom_envs.Island.rewards.weights.wordines=1'];
  const { code, stderr } = await document(folder, args);
  expect(code).toBe(1);
  expect(stderr).toContain(
    `custom_envs.Island.rewards.weights.wordines is the weight of a component that ${join(folder, 'envs/island.ts')} does not declare: did you mean wordiness?`,
  );
}, 120_000);
