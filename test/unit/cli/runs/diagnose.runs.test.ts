// `ragen diagnose`: the diagnosis of stored rollouts under the model that sampled them is the run's own diagnosis, and a
// diagnosis continues, is replaced, and says what it cannot score.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import { collapseDiagnosisSchema } from '../../../../extension/run-data/diagnostics';
import type { Episode } from '../../../../extension/run-data/episode';
import { formatNumber } from '../../../../extension/common/numbers';
import { textProxyNote } from '../../../../extension/run-data/text-proxy';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { attachOnce, contentsOf } from '../../../support/attached';
import { document, ragen } from '../../../support/terminal';
import { TinkerPeer } from '../../../support/tinker-peer';
import { trainHere } from '../../../support/train-here';
import { makeVisionModel } from '../../../support/vision-checkpoints';
import { makeWorkspace, root, type Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(() => {
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

const lake =
  '+custom_envs.Lake={env_type: frozen_lake, max_actions_per_traj: 10, max_tokens: 60, env_instruction: Walk over the frozen lake to the goal and keep out of the holes., env_config: {size: 4, p: 0.8, is_slippery: false, success_rate: 1.0, observation_format: grid_coord}}';

/** Writes own episodes as another trainer's JSON lines. */
function writeRollouts(folder: string, step: number, episodes: readonly Episode[]): void {
  mkdirSync(folder, { recursive: true });
  const lines = episodes.map(({ messages, turns, score, group_id }) => {
    let turn = 0;
    return JSON.stringify({
      ...{ step, group_id, reward: score },
      messages: messages.map(each => (each.role === 'assistant' ? { ...each, content: turns[turn++].raw } : each)),
    });
  });
  writeFileSync(join(folder, `rollouts-${step}.jsonl`), `${lines.join('\n')}\n`);
}

const rolloutsOf = (values: readonly string[], step: number): string =>
  values
    .map((content, i) =>
      JSON.stringify({
        ...{ step, group_id: i % 2, reward: i % 3 },
        messages: [
          { role: 'user', content: `State ${i % 2}` },
          { role: 'assistant', content },
        ],
      }),
    )
    .map(line => `${line}\n`)
    .join('');

test('under the model that sampled them, stored rollouts have the values of the run’s own diagnosis', async () => {
  const { lines, episodes } = await trainHere(
    workspace,
    [
      ...['model_path=ragen-tiny', lake, 'es_manager.train.env_configs.tags=[Lake]', 'es_manager.train.env_groups=2'],
      ...[
        'es_manager.train.env_configs.n_groups=[2]',
        'es_manager.train.group_size=4',
        'agent_proxy.max_turn=2',
        'agent_proxy.enable_think=true',
      ],
      ...['agent_proxy.max_actions_per_turn=2', 'actor_rollout_ref.rollout.response_length=64'],
      ...['actor_rollout_ref.rollout.max_model_len=1024', 'actor_rollout_ref.rollout.temperature=1'],
      'collapse_detection.num_samples=500', // all thoughts, so that no sample is drawn
    ],
    1,
  );
  const source = join(workspace.folder, 'elsewhere');
  writeRollouts(source, 1, episodes);
  const { folder, metrics: before } = await attachOnce(workspace.folder, source);
  expect(before[0]['thoughts/rate']).toBeCloseTo(Number(lines[0]['thoughts/rate']), 6);
  for (const key of ['rollout/in_group_reward_std', 'thoughts/distinct_2', 'thoughts/prompt_information'])
    expect(before[0][key], key).toBeCloseTo(Number(lines[0][key]), 6);

  const { answer, stderr } = await document(workspace.folder, [
    'diagnose',
    folder.id,
    '--model',
    'ragen-tiny',
    '--samples',
    '500',
  ]);
  expect(answer, stderr).toMatchObject({ scored: [1], notes: [] });
  const [line] = contentsOf(folder).metrics;
  const family = 'collapse_first_turn_sample';
  for (const key of ['mi_estimate', 'conditional_entropy_est', 'retrieval_accuracy', 'mi_zscore_ema', 'regime'])
    expect(line[`${family}/${key}`], key).toBeCloseTo(Number(lines[0][`${family}/${key}`]), 3);
  expect(line['collapse/valid_thinking_rate']).toBeCloseTo(Number(lines[0]['collapse/valid_thinking_rate']), 9);
  expect(line['collapse_trajectory_sample/mi_estimate']).toBeGreaterThan(0);
  const derived = JSON.parse(readFileSync(folder.file('derived-metrics.json'), 'utf8')) as Record<string, unknown>;
  expect(derived).toMatchObject({ model: 'ragen-tiny' });

  // The process that follows the run keeps the values.
  const { metrics: again } = await attachOnce(workspace.folder, source, { earlier: folder });
  expect(again).toEqual(contentsOf(folder).metrics);
  expect(again[0][`${family}/mi_estimate`]).toBe(line[`${family}/mi_estimate`]);
}, 180_000);

test('a model that reads pictures is shown the pictures of stored rollouts', async () => {
  const source = join(workspace.folder, 'pictured');
  const names = ['board', 'odd', 'board'];
  const line = (thought: string): string =>
    JSON.stringify({
      input: '<|im_start|>user\nLook: <image><|im_end|>\n<|im_start|>assistant\n',
      output: `<think>${thought}</think><answer>Up</answer><|im_end|>\n`,
      ...{ gts: 'goal', score: 0, step: 1, traj_success: 0 },
    });
  names.forEach((name, i) => {
    mkdirSync(join(source, `image_1/images_${i}`), { recursive: true });
    cpSync(`test/golden/vision/pictures/${name}.png`, join(source, `image_1/images_${i}/0.png`));
  });
  writeFileSync(join(source, '1.jsonl'), `${names.map((_, i) => line(`go ${i}`)).join('\n')}\n`);
  const { folder, episodes } = await attachOnce(workspace.folder, source);
  const stored = episodes['step-000001'];
  expect(stored.map(({ turns }) => turns[0].pictures?.length)).toEqual([1, 1, 1]);
  // The texts of the prompts are equal, so the pictures determine the prompt groups.
  expect(stored.map(({ group_id }) => group_id)).toEqual([0, 1, 0]);

  const scored = async (model: string): Promise<number[][]> => {
    const { code, answer, stderr } = await document(workspace.folder, [
      ...['diagnose', folder.id, '--model', model, '--samples', '3', '--replace'],
    ]);
    expect(code, stderr).toBe(0);
    expect(answer).toMatchObject({ scored: [1], notes: [] });
    const { families } = collapseDiagnosisSchema.parse(
      JSON.parse(readFileSync(folder.file('diagnostics/collapse-000001.json'), 'utf8')),
    );
    return families.find(({ name }) => name === 'collapse_first_turn_sample')!.log_probs_per_token;
  };
  const seen = await scored(await makeVisionModel(workspace.folder, 'qwen2_5_vl'));
  expect(seen).toHaveLength(3);
  for (const [one, other] of seen) expect(Math.abs(one - other)).toBeGreaterThan(1e-4);
  for (const [one, other] of await scored('ragen-tiny')) expect(one).toBe(other); // reads `[image]`
}, 120_000);

test('a diagnosis continues, is judged in the order of its steps, and names what it cannot score', async () => {
  const source = join(workspace.folder, 'steps');
  mkdirSync(source);
  const thought = (text: string) => `<think>${text}</think><answer>up</answer>`;
  const texts = (step: number) => Array.from({ length: 8 }, (_, i) => thought(`At step ${step}, ${i % 2} of ${i}.`));
  for (const step of [1, 2, 3, 4])
    writeFileSync(join(source, `${step}.jsonl`), rolloutsOf(step === 3 ? Array(4).fill('up') : texts(step), step));
  const { folder } = await attachOnce(workspace.folder, source);
  const diagnose = (...flags: string[]) => ragen(workspace.folder, ['diagnose', folder.id, ...flags]);

  const some = await diagnose('--model', 'ragen-tiny', '--steps', '4,3,1');
  expect(some.code, some.stderr).toBe(0);
  expect(some.stdout).toContain('3 steps scored under ragen-tiny');
  expect(some.stdout).toContain('step 3: none of its 4 responses has a thought');
  // The proxy of I(X;Z) is printed with its correlation with I(X;Z).
  const [{ 'thoughts/prompt_information': proxy }] = contentsOf(folder).metrics;
  expect(some.stdout).toMatch(
    new RegExp(`step 1: I\\(X;Z\\) \\S+ nats, text-only proxy ${formatNumber(Number(proxy))}\n`),
  );
  expect(some.stdout).not.toContain('step 3: I(X;Z)');
  expect(some.stdout).toContain(`Text-only proxy: ${textProxyNote}.`);
  const last = folder.file('diagnostics/collapse-000004.json');
  const before = readFileSync(last, 'utf8');

  const rest = await diagnose('--model', 'ragen-tiny', '--every', '1');
  expect(rest.stdout).toContain('1 step scored under ragen-tiny, 3 before');
  expect(contentsOf(folder).metrics.map(line => typeof line['collapse_first_turn_sample/mi_estimate'])).toEqual(
    ['number', 'number', 'undefined', 'number'], // prettier-ignore
  );
  const after = collapseDiagnosisSchema.parse(JSON.parse(readFileSync(last, 'utf8')));
  const scored = collapseDiagnosisSchema.parse(JSON.parse(before));
  expect(after.model).toBe('ragen-tiny');
  expect(after.families[0].log_probs_per_token).toEqual(scored.families[0].log_probs_per_token);
  // Step 2 now precedes step 4, so the running average of step 4 has changed.
  expect(after.families[0].metrics['marginal_std_ema']).not.toBe(scored.families[0].metrics['marginal_std_ema']);

  const other = await diagnose('--model', 'ragen-small', '--steps', '1');
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('give --replace to remove them')]);
  const replaced = await diagnose('--model', 'ragen-small', '--steps', '1', '--replace');
  expect(replaced.code, replaced.stderr).toBe(0);
  const [one, two] = contentsOf(folder).metrics;
  expect(one['collapse_first_turn_sample/mi_estimate']).toEqual(expect.any(Number));
  expect(two['collapse_first_turn_sample/mi_estimate']).toBeUndefined();

  const refusals: [string[], string][] = [
    [['--steps', '9'], '--steps names step 9, of which run'],
    [['--steps', 'x'], '--steps is "x"'],
    [['--steps', '1', '--every', '2'], 'give one of them'],
  ];
  for (const [flags, sentence] of refusals)
    expect((await diagnose('--model', 'ragen-small', ...flags)).stderr).toContain(sentence);
}, 180_000);

test('a server scores the texts with its base model', async () => {
  const tokenizer = readTokenizer(join(root, 'media/models/ragen-tiny'));
  const { vocab_size } = JSON.parse(readFileSync(join(root, 'media/models/ragen-tiny/config.json'), 'utf8')) as {
    vocab_size: number;
  };
  const peer = await TinkerPeer.start({ vocabSize: vocab_size });
  try {
    const source = join(workspace.folder, 'scored-by-server');
    mkdirSync(source);
    const responses = Array.from({ length: 4 }, (_, i) => `<think>I am in state ${i}.</think><answer>up</answer>`);
    writeFileSync(join(source, '1.jsonl'), rolloutsOf(responses, 1));
    const { folder } = await attachOnce(workspace.folder, source);
    const diagnose = (...flags: string[]) =>
      ragen(workspace.folder, ['diagnose', folder.id, '--model', 'ragen-tiny', ...flags]);

    // The peer's log-prob of a token depends on the token before it only; the prompts end in the same token.
    let table: Float64Array | undefined;
    peer.fault = path => {
      if (path === 'forward') table = [...peer.models.values()][0].table.slice();
      return undefined;
    };
    const { code, stdout, stderr } = await diagnose('--engine', `${peer.url}/`, '--no-key');
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('1 step scored under ragen-tiny');
    expect(stderr).toContain(`scoring with peer/bigram on ${peer.url}`);
    expect(peer.models.size).toBe(0);
    const logprob = (last: number, next: number) => {
      const row = table!.subarray(last * vocab_size, (last + 1) * vocab_size);
      return row[next] - Math.log(row.reduce((sum, x) => sum + Math.exp(x), 0));
    };
    const stored = readFileSync(folder.file('diagnostics/collapse-000001.json'), 'utf8');
    const [family] = collapseDiagnosisSchema.parse(JSON.parse(stored)).families;
    expect(family.samples).toHaveLength(4);
    for (const [row, { episode }] of family.samples.entries()) {
      const all = Object.values(contentsOf(folder).episodes).flat();
      const text = all.find(({ id }) => id === episode)!.turns[0].thought!.trim();
      const ids = [tokenizer.encode('<think>').at(-1)!, ...tokenizer.encode(text)];
      const mean = ids.slice(1).reduce((sum, id, i) => sum + logprob(ids[i], id), 0) / (ids.length - 1);
      for (const value of family.log_probs_per_token[row]) expect(value).toBeCloseTo(mean, 4);
    }
    expect(family.metrics['mi_estimate']).toBeCloseTo(0, 4);

    const here = await diagnose();
    expect([here.code, here.stderr]).toEqual([1, expect.stringContaining('give --replace to remove them')]);
    const wrong = await diagnose('--engine', 'localhost:8000');
    expect(wrong.stderr).toContain('diagnose: --engine is not the address of a server');
    const unset = await diagnose('--engine', peer.url, '--key-env', 'RAGEN_NO_SUCH_KEY', '--replace');
    expect(unset.stderr).toContain('the environment variable RAGEN_NO_SUCH_KEY is not set');
  } finally {
    await peer.stop();
  }
}, 120_000);

test('a run of this product is refused', async () => {
  const { folder } = await trainHere(workspace, [], 1);
  const { code, stderr } = await ragen(workspace.folder, [
    'diagnose',
    RunFolder.open(folder).id,
    '--model',
    'ragen-tiny',
  ]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('diagnoses its runs while it trains them')]);
});
