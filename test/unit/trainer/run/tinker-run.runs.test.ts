// Runs whose model is on a server of the Tinker API (test/support/tinker-peer.ts), started from the terminal: training,
// resuming, and what an unreliable server does to a run.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { document, killAll, leaseOf, readRun, runsOf } from '../../../support/terminal';
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

describe('a run on a server', { timeout: 240_000 }, () => {
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
    const messages = run.events.map(({ kind, message }) => `${kind} ${message}`);
    expect(messages.some(message => message.startsWith('resume resumed from checkpoints/'))).toBe(true);
    expect(messages).toContainEqual(
      expect.stringMatching(
        /^warning the run returns to checkpoints\/step-\d+: engine: the answer to optim_step was lost/,
      ),
    );
    expect(run.status!.error).toBeUndefined();
    expect(numbersOf(run)).toEqual(expected);
  });

  test('keeps on the server only the states that its checkpoints need, and trains a critic where there is one', async () => {
    await started({ deletes: true, critic: true });
    const gae = ['algorithm.adv_estimator=gae', 'trainer.save_freq=1', 'workbench.keep_checkpoints=2'];
    const { code, stderr } = await train(...gae);
    expect(code, stderr).toBe(0);
    const run = newest();
    const trained = run.metrics.filter(line => 'critic/vf_loss' in line);
    expect(trained.length).toBeGreaterThan(0);
    for (const line of trained) expect(line).toMatchObject({ 'critic/skipped_updates': 0 });
    const folder = join(runsOf(workspace.folder).at(-1)!, 'checkpoints');
    const needed = run.checkpoints.flatMap(name => {
      const { state } = JSON.parse(readFileSync(join(folder, name, 'checkpoint.json'), 'utf8')) as {
        state: { server: { path: string; critic: { path: string } } };
      };
      return [state.server.path, state.server.critic.path];
    });
    expect(run.checkpoints.length).toBe(2);
    const states = [...peer.saved.keys()].filter(path => path.includes('/weights/'));
    expect(states.sort()).toEqual(needed.sort());
    const resumed = await train(
      ...gae,
      'trainer.resume_mode=resume_path',
      `trainer.resume_from_path=${join(folder, run.checkpoints.at(-1)!)}`,
      'trainer.total_training_steps=5',
    );
    expect(resumed.code, resumed.stderr).toBe(0);
    expect([...peer.saved.keys()]).toEqual(expect.arrayContaining(needed));
  });

  test('refuses gae on a server without a critic by key, value and remedy', async () => {
    await started();
    const { code, answer } = await train('algorithm.adv_estimator=gae');
    expect(code).toBe(1);
    expect(answer.error?.message).toMatch(/^config: algorithm.adv_estimator is gae, but .* does not create a critic/);
  });

  test('applies the settings of a resume once: a later change survives a return', async () => {
    await started();
    await train('trainer.total_training_steps=2', 'trainer.save_freq=1');
    const run = basename(runsOf(workspace.folder).at(-1)!);
    const lr = 'actor_rollout_ref.actor.optim.lr';
    const change = () => document(workspace.folder, ['set', run, `${lr}=0.00005`]);
    let [steps, rounds, changed] = [0, 0, false];
    peer.fault = path => {
      if (path === 'save_weights') rounds++;
      if (path === 'asample' && rounds > 0 && !changed) return (changed = true) && { after: change() };
      if (path === 'optim_step' && rounds >= 3 && steps++ === 0) return 'cut after';
      return undefined;
    };
    const { code, stderr } = await document(workspace.folder, [
      ...['resume', run, 'trainer.total_training_steps=6', `${lr}=0.0001`],
    ]);
    expect(code, stderr).toBe(0);
    expect(steps).toBeGreaterThan(1);
    const changes = newest().events.filter(({ kind, data }) => kind === 'setting' && data?.key === lr);
    expect(changes.map(({ data }) => data?.to)).toEqual([0.0001, 0.00005]);
    expect(newest().events.some(({ message }) => message.startsWith('the run returns to'))).toBe(true);
  });

  test('shows why it cannot return to its checkpoint', async () => {
    await started();
    let steps = 0;
    peer.fault = path => (path === 'optim_step' && ++steps === probed + 3 ? 'cut after' : undefined);
    const { code, answer } = await train('trainer.resume_mode=disable');
    expect(code).toBe(1);
    const sentence =
      /^engine: the answer to optim_step was lost .* and the run cannot return .*trainer.resume_mode=disable/;
    expect(answer.error?.message).toMatch(sentence);
    expect(newest().status).toMatchObject({ state: 'failed', error: expect.stringMatching(sentence) as string });
  });

  test('ends with the reason after five returns to the same checkpoint', async () => {
    await started();
    let steps = 0;
    const lost = (path: string) => path === 'optim_step' && steps++ % (probed + 1) === probed;
    peer.fault = path => (lost(path) ? 'cut after' : undefined);
    const { code, answer } = await train();
    expect(code).toBe(1);
    expect(answer.error?.message).toMatch(/^engine: .* was lost .* returned to the same checkpoint 5 times: check/);
    expect(steps).toBe(6 * (probed + 1));
  });

  test('keeps a stop that arrives between two sessions', async () => {
    await started();
    let steps = 0;
    let returned = false;
    peer.fault = path => {
      if (path === 'optim_step' && ++steps === probed + 3) return 'cut after';
      if (path !== 'unload_model' || steps < probed + 3 || returned) return undefined;
      returned = true; // the first session ends
      process.kill(leaseOf(runsOf(workspace.folder).at(-1)!)!.pid, 'SIGTERM');
      return undefined;
    };
    await train();
    expect(returned).toBe(true);
    expect(newest().status).toMatchObject({ state: 'stopped' });
    expect(steps).toBeLessThan(probed + 4);
  });

  test('ends as stopped, without the step, when it is stopped while the answer to the step is missing', async () => {
    await started();
    let steps = 0;
    peer.fault = path => {
      if (path === 'optim_step') steps++;
      if (path !== 'retrieve_future' || steps < probed + 3) return undefined;
      if (steps === probed + 3) process.kill(leaseOf(runsOf(workspace.folder).at(-1)!)!.pid, 'SIGTERM');
      steps = Infinity;
      return { status: 502, body: {} };
    };
    await train();
    const run = newest();
    expect(run.status!.state).toBe('stopped');
    const { step } = run.status!;
    expect(run.checkpoints.at(-1)).toBe(`step-${String(step).padStart(6, '0')}`);
    expect(run.events.map(({ message }) => message).join()).toContain(
      'ragen resume continues from the newest checkpoint',
    );
    peer.fault = () => undefined;
    const resumed = await document(workspace.folder, ['resume', basename(runsOf(workspace.folder).at(-1)!)]);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(newest().status).toMatchObject({ state: 'finished', step: 4 });
  });

  test('resumes with another URL and says so', async () => {
    await started();
    await train();
    const from = join(runsOf(workspace.folder).at(-1)!, 'checkpoints', newest().checkpoints.at(-1)!);
    const { url } = peer;
    const state = peer.saved;
    await peer.stop();
    await started();
    for (const [path, model] of state) if (path.includes('/weights/')) peer.saved.set(path, model);
    const resume = ['trainer.resume_mode=resume_path', `trainer.resume_from_path=${from}`];
    const { code, stderr } = await train(...resume, 'trainer.total_training_steps=5');
    expect(code, stderr).toBe(0);
    const notes = newest().events.map(({ message }) => message);
    expect(notes).toContain(`the checkpoint's state was saved by ${url} and is loaded by ${peer.url}`);
  });

  test('refuses a checkpoint of the other engine by key, value and remedy', async () => {
    await started();
    await train();
    const checkpoint = () => join(runsOf(workspace.folder).at(-1)!, 'checkpoints', newest().checkpoints.at(-1)!);
    const onServer = ['trainer.resume_mode=resume_path', `trainer.resume_from_path=${checkpoint()}`];
    const local = await train(...onServer, 'workbench.engine=local', 'trainer.total_training_steps=5');
    expect(local.answer.error?.message).toMatch(
      /^config: workbench.engine is local, but .* was written with workbench.engine=tinker, .*: set workbench.engine=tinker/,
    );
    await train('workbench.engine=local', 'trainer.total_training_steps=1');
    const onMachine = ['trainer.resume_mode=resume_path', `trainer.resume_from_path=${checkpoint()}`];
    const served = await train(...onMachine, 'trainer.total_training_steps=5');
    expect(served.answer.error?.message).toMatch(
      /^config: workbench.engine is tinker, but .* was written by the engine on this machine, .*: set workbench.engine=local/,
    );
  });

  test('waits during an outage, says so, and continues with the same results', async () => {
    await started();
    await train();
    const expected = numbersOf(newest());
    let cut = 0;
    peer.fault = path => (path === 'asample' && cut++ < 5 ? 'cut before' : undefined);
    const { code } = await train();
    expect(code).toBe(0);
    const run = newest();
    expect(numbersOf(run)).toEqual(expected);
    const messages = run.events.map(({ message }) => message);
    expect(messages.some(message => message.includes('is unavailable'))).toBe(true);
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
    ['actor_rollout_ref.rollout.temperature=0.7', 'temperature is 0.7, which workbench.engine=tinker does not support'],
    ['workbench.engine_url=host:8000', 'workbench.engine_url is'],
    ['workbench.engine_api_key_env=tml-8hUj2kLs9dQ', 'workbench.engine_api_key_env is not the name of an environment'],
    [
      'lora.target_modules=[q_proj,v_proj]',
      'lora.target_modules is ["q_proj","v_proj"], which workbench.engine=tinker',
    ],
  ])('is refused before it starts: %s', async (override, sentence) => {
    await started();
    const before = runsOf(workspace.folder).length;
    const { code, answer } = await train(override);
    expect(code).not.toBe(0);
    expect(answer.error?.message).toContain(sentence);
    expect(runsOf(workspace.folder).length).toBe(before);
  });
});
