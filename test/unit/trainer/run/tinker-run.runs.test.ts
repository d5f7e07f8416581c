// Runs whose model is on a server of the Tinker API (test/support/tinker-peer.ts), started from the terminal: training,
// resuming, and what an unreliable server does to a run.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { killAll, document, readRun, runsOf } from '../../../support/terminal';
import { TinkerPeer, type PeerOptions } from '../../../support/tinker-peer';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

let workspace: Workspace;
let vocabSize: number;
/** The tokens that end an answer and a turn. */
let leaning: Record<number, number>;
beforeAll(() => {
  workspace = makeWorkspace();
  const model = join(workspace.folder, 'models/random');
  ({ vocab_size: vocabSize } = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as { vocab_size: number });
  const { added_tokens } = JSON.parse(readFileSync(join(model, 'tokenizer.json'), 'utf8')) as {
    added_tokens: { id: number; content: string }[];
  };
  const idOf = (text: string) => added_tokens.find(({ content }) => content === text)!.id;
  leaning = { [idOf('</answer>')]: 6, [idOf('<|im_end|>')]: 5 };
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

let peer: TinkerPeer;
afterEach(() => peer.stop());
const started = async (options: Partial<PeerOptions> = {}) =>
  void (peer = await TinkerPeer.start({ vocabSize, leaning, ...options }));

/** Optimizer steps of a connection's probe. */
const probed = 6;

interface Answer {
  run?: string;
  error?: { message: string };
}
const train = (...overrides: string[]) =>
  document<Answer>(workspace.folder, [
    'train',
    '--config-name',
    'words',
    'workbench.engine=tinker',
    `workbench.engine_url=${peer.url}`,
    'lora.rank=8',
    ...overrides,
  ]);
const newest = () => readRun(runsOf(workspace.folder).at(-1)!);

/** Metrics of a run without times and rates. */
const numbersOf = ({ metrics }: ReturnType<typeof readRun>) =>
  metrics.map(line =>
    Object.fromEntries(Object.entries(line).filter(([key]) => /^(step|actor|critic|rollout|train|val)/.test(key))),
  );

describe('a run on a server', () => {
  test('trains, validates and writes the adapter into its checkpoints', async () => {
    await started();
    const { code, stderr } = await train();
    expect(code, stderr).toBe(0);
    const run = newest();
    expect(run.status).toMatchObject({ state: 'finished', step: 4 });
    expect(run.metrics.filter(line => 'actor/pg_loss' in line).length).toBeGreaterThan(0);
    expect(run.metrics.some(line => 'actor/entropy_estimate' in line)).toBe(true);
    expect(run.events.map(({ message }) => message).join()).toContain(`${peer.url} (peer/bigram)`);
    const folder = join(runsOf(workspace.folder).at(-1)!, 'checkpoints', run.checkpoints.at(-1)!);
    expect(JSON.parse(readFileSync(join(folder, 'adapter_config.json'), 'utf8'))).toMatchObject({
      r: 8,
      lora_alpha: 32,
    });
  });

  test('equals itself under the other reduction of losses', async () => {
    await started();
    await train();
    const expected = numbersOf(newest());
    await peer.stop();
    await started({ tokens: 'mean', samples: 'mean' });
    const { code, stderr } = await train();
    expect(code, stderr).toBe(0);
    expect(numbersOf(newest()).length).toBe(expected.length);
    numbersOf(newest()).forEach((line, i) => {
      for (const [key, value] of Object.entries(line)) expect(value, key).toBeCloseTo(Number(expected[i][key]), 4);
    });
  });

  test('returns to its newest checkpoint when an answer to an optimizer step is lost, with the same results', async () => {
    await started();
    await train();
    const expected = numbersOf(newest());
    let steps = 0;
    peer.fault = path => (path === 'optim_step' && ++steps === probed + 3 ? 'cut after' : undefined);
    const { code, stderr } = await train();
    expect(code, stderr).toBe(0);
    expect(steps).toBeGreaterThan(2 * probed);
    const run = newest();
    expect(run.status).toMatchObject({ state: 'finished', step: 4 });
    expect(run.events.some(({ kind }) => kind === 'resume')).toBe(true);
    expect(numbersOf(run)).toEqual(expected);
  });

  test('waits during an outage, says so, and continues with the same results', async () => {
    await started();
    await train();
    const expected = numbersOf(newest());
    let cut = 0;
    peer.fault = path => (path === 'asample' && cut++ < 20 ? 'cut before' : undefined);
    const { code } = await train();
    expect(code).toBe(0);
    const run = newest();
    expect(numbersOf(run)).toEqual(expected);
    const messages = run.events.map(({ message }) => message);
    expect(messages.some(message => message.includes('does not answer'))).toBe(true);
    expect(messages).toContain(`${peer.url} answers again`);
  });

  test('ends with the address and the remedy when the server stays away', async () => {
    await started();
    peer.fault = path => (path === 'asample' ? 'cut before' : undefined);
    const { code, answer } = await train('workbench.engine_outage_s=1');
    expect(code).toBe(1);
    expect(answer.error?.message).toMatch(
      /^engine: http:.* does not answer asample \(.*\): start the server or correct/,
    );
  });

  test.each([
    ['lora.rank=0', 'lora.rank is 0, which workbench.engine=tinker does not support'],
    ['algorithm.adv_estimator=gae', 'adv_estimator is gae, which workbench.engine=tinker does not support'],
    ['actor_rollout_ref.rollout.temperature=0.7', 'temperature is 0.7, which workbench.engine=tinker does not support'],
    ['workbench.engine_url=host:8000', 'workbench.engine_url is'],
    ['workbench.engine_api_key_env=tml-8hUj2kLs9dQ', 'workbench.engine_api_key_env is not the name of an environment'],
    ['model_path=Qwen/Qwen3-0.6B', 'workbench.engine=tinker needs a folder'],
  ])('is refused before it starts: %s', async (override, sentence) => {
    await started();
    const before = runsOf(workspace.folder).length;
    const { code, answer } = await train(override);
    expect(code).not.toBe(0);
    expect(answer.error?.message).toContain(sentence);
    expect(runsOf(workspace.folder).length).toBe(before);
  });
});
