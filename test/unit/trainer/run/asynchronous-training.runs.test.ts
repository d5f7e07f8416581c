// Training whose rollouts are sampled while earlier steps train (workbench.max_staleness), on a server with an exact
// model (test/support/tinker-peer.ts): which weights sample which step, and what stops, pauses, edits, changed settings
// and failures do to rollouts in progress.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Episode } from '../../../../extension/run-data/episode';
import { environmentReloadSchema } from '../../../../extension/run-data/run-events';
import type { RunEvent } from '../../../../extension/run-data/run-events';
import { installation } from '../../../../extension/node/installation';
import { Journal } from '../../../../extension/trainer/run/journal';
import { RunControl } from '../../../../extension/trainer/run/run-control';
import { openRun } from '../../../../extension/trainer/run/open-run';
import { newestValid } from '../../../../extension/trainer/store/newest-checkpoint';
import type { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { makeRun } from '../../../../extension/cli/run-lifecycle/make-run';
import { train } from '../../../../extension/trainer/loop/train';
import { BigramModel } from '../../../support/bigram-model';
import { document, killAll, readRun, runsOf, timed } from '../../../support/terminal';
import { TinkerPeer, type PeerOptions } from '../../../support/tinker-peer';
import { groupOverrides, stepOverrides } from '../../../support/tiny-overrides';
import { keepAll, mean } from '../../../support/train-here';
import { makeWorkspace, wordsEnvironment, type Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

vi.setConfig({ testTimeout: 180_000 });

let workspace: Workspace;
let source: string;
let vocabSize: number;
let leaning: Record<number, number>;
/** Ids of the tokens with a text. */
let idOf: (text: string) => number;
beforeEach(() => {
  workspace = makeWorkspace();
  source = join(workspace.folder, 'environments/words.ts');
  const model = join(workspace.folder, 'models/random');
  ({ vocab_size: vocabSize } = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as { vocab_size: number });
  const { added_tokens, model: pieces } = JSON.parse(readFileSync(join(model, 'tokenizer.json'), 'utf8')) as {
    added_tokens: { id: number; content: string }[];
    model: { vocab: Record<string, number> };
  };
  idOf = text => added_tokens.find(({ content }) => content === text)?.id ?? pieces.vocab[text];
  leaning = { [idOf('</answer>')]: 6, [idOf('<|im_end|>')]: 5 };
});
let peer: TinkerPeer;
afterEach(async () => {
  await killAll(workspace.folder);
  await peer.stop();
  workspace.remove();
});
afterAll(() => rmSync(installation.cache, { recursive: true, force: true }));

const startPeer = async (options: Partial<PeerOptions> = {}): Promise<void> => {
  peer = await TinkerPeer.start({ vocabSize, leaning, ...options });
};

const makeFolder = async (staleness: number, steps: number, overrides: readonly string[] = []): Promise<RunFolder> => {
  const { folder } = await makeRun({
    configName: 'words',
    overrides: [
      ...[...stepOverrides(steps), 'trainer.test_freq=-1', ...groupOverrides('val', [1])],
      ...[...keepAll, 'trainer.save_freq=1', 'workbench.keep_checkpoints=50'],
      'workbench.step_timeout_ms=60000', // a held environment must not fail
      ...['workbench.engine=tinker', `workbench.engine_url=${peer.url}`, 'lora.rank=8'],
      `workbench.max_staleness=${staleness}`,
      ...overrides,
    ],
    workspace: workspace.folder,
  });
  return folder;
};

interface Opened extends Awaited<ReturnType<typeof openRun>> {
  control: RunControl;
  events: RunEvent[];
  close(): Promise<void>;
}

/** Opens a run at its newest checkpoint. */
async function open(folder: RunFolder): Promise<Opened> {
  const events: RunEvent[] = [];
  const checkpoint = (await newestValid(folder.path)).checkpoint;
  const step = checkpoint?.manifest.step ?? 0;
  const status = {
    ...{ state: 'running' as const, step, total_steps: 2, success: null, reward: null },
    ...{ tokens_per_s: null, eta_s: null, phase: 'idle', updated: new Date().toISOString() },
  };
  const watchers = {
    status: () => undefined,
    appended: () => undefined,
    event: (event: RunEvent) => void events.push(event),
  };
  const journal = new Journal(folder, watchers, status, 0);
  const control = new RunControl(() => undefined);
  const opened = await openRun({ folder, workspace: workspace.folder, checkpoint, control, journal });
  const close = async () => {
    await opened.run.close();
    await journal.close();
  };
  return { ...opened, control, events, close };
}

/** Trains a run to its end. `look` is called before the training begins. */
async function trained(folder: RunFolder, look: (opened: Opened) => void = () => undefined) {
  const opened = await open(folder);
  try {
    look(opened);
    const end = await train(opened.run, opened.state);
    await opened.run.checkpoints.writeLast(opened.state);
    return { end, ...readRun(folder.path) };
  } finally {
    await opened.close();
  }
}

/** An environment in which every answer, or none, is a success. */
const endingWith = (success: boolean): string =>
  wordsEnvironment(
    `return { observation: '', reward: String(action).length / 9, terminated: true, truncated: false, info: { success: ${success} } };`,
  );

/** Without checkpoints. */
const quick = ['trainer.save_freq=-1'];

/** Metrics that do not depend on time. */
const numbersOf = (metrics: readonly Record<string, unknown>[]) =>
  metrics.map(line =>
    Object.fromEntries(Object.entries(line).filter(([key]) => !timed.test(key) && key !== 'rollout/overlap')),
  );
const ofStep = (episodes: readonly Episode[], step: number, mode = 'train'): Episode[] =>
  episodes.filter(episode => episode.step === step && episode.mode === mode);

/** The server's weights after each step, from the run's checkpoints: entry k are the weights after step k. */
function versionsOf(folder: RunFolder, steps: number): BigramModel[] {
  const first = new BigramModel(vocabSize, { tokens: 'sum', samples: 'sum' }, 1, leaning);
  const saved = Array.from({ length: steps }, (_, i) => {
    const name = `step-${String(i + 1).padStart(6, '0')}`;
    const manifest = JSON.parse(readFileSync(join(folder.path, 'checkpoints', name, 'checkpoint.json'), 'utf8')) as {
      state: { server: { path: string } };
    };
    const stored = peer.saved.get(manifest.state.server.path);
    if (!(stored instanceof BigramModel)) throw new Error(`${name} is not saved`);
    return stored;
  });
  return [first, ...saved];
}

/** The versions under which the sampled tokens of episodes have their recorded log-probs. */
const sampledBy = (episodes: readonly Episode[], versions: readonly BigramModel[]): number[] =>
  [...versions.keys()].filter(version =>
    episodes.every(({ tokens: { ids, mask, logprobs } }) =>
      ids.every((id, t) => {
        if (!mask[t]) return true;
        const [logprob] = versions[version].logprobs([ids[t - 1]], [id]);
        return Math.abs(logprob - logprobs[t]!) < 1e-5;
      }),
    ),
  );

/** Calls `act` at the first request of step `step`'s update: its log-probs before the update. */
const atUpdate = (step: number, act: () => void): void => {
  let [updates, inUpdate] = [0, false];
  peer.fault = path => {
    if (path === 'forward' && !inUpdate && ++updates === step) act();
    if (path === 'forward') inUpdate = true;
    if (path === 'save_weights_for_sampler') inUpdate = false; // the weights of the step are published
    return undefined;
  };
};

describe('the weights that sample a step', () => {
  test.each([
    [0, 3],
    [1, 5],
    [3, 6],
  ])('are the promised ones with max_staleness %i', async (staleness, steps) => {
    await startPeer();
    const folder = await makeFolder(staleness, steps);
    const { metrics, episodes, end } = await trained(folder);
    expect(end).toBe('finished');
    const versions = versionsOf(folder, steps);
    for (let step = 1; step <= steps; step++) {
      const promised = Math.max(0, step - 1 - staleness);
      expect(sampledBy(ofStep(episodes, step), versions), `step ${step}`).toEqual([promised]);
      const line = metrics.find(each => each.step === step)!;
      expect(line['rollout/staleness']).toBe(staleness === 0 ? undefined : step - 1 - promised);
    }
  });

  test('have the curriculum’s groups of the same step', async () => {
    await startPeer();
    const tags = ['Easy', 'Hard'];
    const definitions = tags.map(name => {
      const source = workspace.write(`environments/${name.toLowerCase()}.ts`, endingWith(name === 'Easy'));
      return `+custom_envs.${name}={env_type: ${source}, max_actions_per_traj: 1, env_config: {hold: ''}}`;
    });
    const folder = await makeFolder(1, 4, [
      ...[...quick, ...definitions, 'es_manager.train.env_configs.tags=[Easy,Hard]'],
      ...['es_manager.train.env_groups=8', 'es_manager.train.env_configs.n_groups=[4,4]'],
      ...[
        'es_manager.train.group_size=2',
        'workbench.curriculum={easy_weight: 0.25, hard_weight: 0.5, easy_above: 0.4, hard_below: 0.05}',
      ],
    ]);
    const { episodes } = await trained(folder);
    const groups = [1, 2, 3, 4].map(step =>
      tags.map(tag => new Set(ofStep(episodes, step).flatMap(e => (e.tag === tag ? e.group_id : []))).size),
    );
    // The weights before step 1 sample steps 1 and 2; after step 1, the shares of 8 groups are 1 : 2.
    expect(groups).toEqual([
      [4, 4],
      [4, 4],
      [3, 5],
      [3, 5],
    ]);
  });

  test('do not depend on timing', async () => {
    await startPeer();
    const fast = await trained(await makeFolder(2, 4, quick));
    await peer.stop();
    await startPeer({ latencyMs: 7 });
    const slow = await trained(await makeFolder(2, 4, quick));
    expect(numbersOf(slow.metrics)).toEqual(numbersOf(fast.metrics));
    const tokens = ({ episodes }: typeof slow) => episodes.map(({ id, tokens }) => ({ id, tokens }));
    expect(tokens(slow)).toEqual(tokens(fast));
  });

  test('sample while the step trains, and the metrics say for how long', async () => {
    await startPeer({ latencyMs: 20 });
    const { metrics } = await trained(await makeFolder(1, 4, quick));
    const between = (step: number): string[] => {
      const updates = peer.requests.flatMap(({ path }, i) => (path === 'forward_backward' ? [i] : []));
      return peer.requests.slice(updates[step - 1], updates[step]).map(({ path }) => path);
    };
    expect(between(5)).toContain('asample');
    const overlaps = metrics.map(line => Number(line['rollout/overlap']));
    for (const overlap of overlaps) expect(overlap >= 0 && overlap <= 1).toBe(true);
    expect(Math.max(...overlaps)).toBeGreaterThan(0);
    expect(overlaps.at(-1)).toBe(0); // the last step has no rollout after it
    expect(metrics.every(line => 'timing_s/rollout_wait' in line && 'timing_s/gen' in line)).toBe(true);
  });

  test('are the newest ones in a validation, which no rollout accompanies', async () => {
    await startPeer();
    const folder = await makeFolder(1, 4, ['trainer.test_freq=2', 'trainer.val_before_train=true']);
    const { episodes } = await trained(folder);
    const versions = versionsOf(folder, 4);
    for (const step of [0, 2, 4])
      expect(sampledBy(ofStep(episodes, step, 'val'), versions), `step ${step}`).toEqual([step]);
  });

  test('follow DAPO and ReMax too: all batches of a step have one version', async () => {
    await startPeer();
    for (const overrides of [
      ['algorithm.adv_estimator=remax'],
      ['algorithm.filter_groups.enable=true', 'algorithm.filter_groups.max_num_gen_batches=2'],
    ]) {
      const folder = await makeFolder(1, 3, overrides);
      const { episodes } = await trained(folder);
      const versions = versionsOf(folder, 3);
      for (let step = 1; step <= 3; step++)
        expect(sampledBy(ofStep(episodes, step), versions)).toContain(Math.max(0, step - 2));
    }
  });
});

test('with max_staleness 1 and token-level truncated importance sampling, a policy learns', async () => {
  await startPeer({ leaning: { [idOf('Up')]: 8, [idOf('Down')]: 8, [idOf('</answer>')]: 8 } });
  workspace.write(
    'environments/words.ts',
    wordsEnvironment(
      `return { observation: '', reward: Number(String(action).startsWith('Up')), terminated: true, truncated: false, info: { success: true } };`,
    ),
  );
  const { metrics } = await trained(
    await makeFolder(1, 8, [
      ...[...quick, 'actor_rollout_ref.actor.optim.lr=0.1', 'agent_proxy.max_turn=1'],
      ...groupOverrides('train', [2], 12),
    ]),
  );
  const rewards = metrics.map(line => Number(line['critic/score/mean']));
  expect(mean(rewards.slice(-3))).toBeGreaterThan(mean(rewards.slice(0, 2)) + 0.2);
  const weights = metrics.map(line => Number(line['rollout_corr/rollout_is_max']));
  expect(weights[0]).toBeCloseTo(1, 4); // the first rollout is by the weights that it trains
  expect(Math.max(...weights)).toBeGreaterThan(1.05); // the later ones are by older weights
});

test('a server whose published version is the model in training is refused by key, value and remedy', async () => {
  await startPeer({ live: true });
  await expect(open(await makeFolder(1, 2))).rejects.toThrow(
    /^config: workbench\.max_staleness is 1, which http:\S+ does not support \(the server samples each published version with the newest weights\): set it to 0, or use/,
  );
  const { metrics } = await trained(await makeFolder(0, 2, quick));
  expect(metrics.length).toBe(2);
});

describe('a rollout in progress', () => {
  let failure: unknown;
  beforeEach(() => (failure = undefined));
  const hold = (): string => join(workspace.folder, 'hold');
  const holding = (): string => `custom_envs.Words.env_config.hold=${hold()}`;

  test('is discarded by a stop, and played again after a resume, by the weights of the checkpoint', async () => {
    await startPeer();
    const folder = await makeFolder(1, 5, [holding()]);
    const first = await trained(folder, ({ control }) =>
      atUpdate(2, () => {
        writeFileSync(`${hold()}.train`, ''); // the rollout of step 3 cannot end
        peer.fault = path => {
          if (path === 'optim_step') control.stop();
          return undefined;
        };
      }),
    );
    expect(first.end).toBe('stopped');
    expect(first.metrics.map(({ step }) => step)).toEqual([1, 2]);
    expect([...new Set(first.episodes.map(({ step }) => step))]).toEqual([1, 2]);
    rmSync(`${hold()}.train`);
    peer.fault = () => undefined;
    const { end, metrics, episodes } = await trained(folder);
    expect(end).toBe('finished');
    expect(metrics.map(line => [line.step, line['rollout/staleness']])).toEqual([
      [1, 0],
      [2, 1],
      [3, 0],
      [4, 1],
      [5, 1],
    ]);
    const versions = versionsOf(folder, 5);
    for (const [step, version] of [
      [1, 0],
      [2, 0],
      [3, 2],
      [4, 2],
      [5, 3],
    ])
      expect(sampledBy(ofStep(episodes, step), versions), `step ${step}`).toEqual([version]);
    // The seeds continue as without the stop: two groups in each step, none left out or repeated.
    const seeds = [...new Set(episodes.map(({ seed }) => seed))];
    expect(seeds).toEqual(Array.from({ length: 10 }, (_, i) => seeds[0] + i));
  });

  test('ends with an early stop of the run', async () => {
    await startPeer();
    const folder = await makeFolder(2, 9, [
      holding(),
      ...['actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=2', 'es_manager.format_penalty=0'],
      'actor_rollout_ref.rollout.rollout_filter_include_zero=false',
    ]);
    workspace.write(
      'environments/words.ts',
      wordsEnvironment(
        `return { observation: '', reward: 0, terminated: true, truncated: false, info: { success: false } };`,
      ),
    );
    const { end, metrics, episodes } = await trained(folder);
    expect(end).toBe('finished');
    expect(metrics.map(({ step }) => step)).toEqual([1, 2]);
    expect([...new Set(episodes.map(({ step }) => step))]).toEqual([1, 2]);
  });

  test('finishes during a pause, and the next one does not begin', async () => {
    await startPeer();
    const folder = await makeFolder(1, 4, quick);
    let asked = 0;
    const count = (): number => peer.requests.filter(({ path }) => path === 'asample').length;
    const { end, metrics } = await trained(folder, ({ control, run }) =>
      atUpdate(2, () => {
        control.pause();
        void (async () => {
          await expect.poll(() => run.rollouts.ahead).toEqual({ playing: null, next: 4 });
          asked = count();
          await expect.poll(() => run.journal.status.step).toBe(2);
          expect(count()).toBe(asked);
          control.resume();
        })();
      }),
    );
    expect(end).toBe('finished');
    expect(metrics.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    expect(count()).toBeGreaterThan(asked);
  });

  test('does not delay a requested checkpoint, which excludes it', async () => {
    await startPeer();
    const folder = await makeFolder(1, 3, [...quick, holding()]);
    let written = '';
    await trained(folder, ({ control }) => {
      let asked = false;
      peer.fault = path => {
        if (path !== 'forward_backward' || asked || !peer.requests.some(request => request.path === 'forward')) return;
        asked = true;
        writeFileSync(`${hold()}.train`, '');
        void control.checkpoint().then(name => {
          written = name;
          rmSync(`${hold()}.train`);
        });
        return undefined;
      };
    });
    expect(written).toBe('checkpoints/step-000001');
    const manifest = JSON.parse(readFileSync(join(folder.path, written, 'checkpoint.json'), 'utf8')) as {
      seed_counter: number;
    };
    expect(manifest.seed_counter).toBe(2); // two groups of step 1, none of the rollout in progress
  });

  test('keeps its code when an environment is edited, and the mark names the first step with the new code', async () => {
    await startPeer();
    const folder = await makeFolder(2, 6, [...quick, 'workbench.check_types=false']);
    const { episodes, events } = await trained(folder, ({ run, events }) =>
      atUpdate(2, () => {
        const saved = expect
          .poll(() => run.rollouts.ahead) // those of steps 3 and 4 are played while step 2 waits for the server
          .toEqual({ playing: null, next: 5 })
          .then(() => {
            writeFileSync(`${source}.new`, wordsEnvironment(`if (action === 'never') throw new Error();`));
            renameSync(`${source}.new`, source);
          });
        saved.catch((error: unknown) => (failure = error));
        const isReloaded = () => events.some(({ kind }) => kind === 'environment_reload');
        peer.fault = path =>
          path === 'forward' && !isReloaded() && failure === undefined ? { status: 503, body: {} } : undefined;
      }),
    );
    expect(failure).toBeUndefined();
    const { from, to, step } = environmentReloadSchema.parse(
      events.find(({ kind }) => kind === 'environment_reload')!.data,
    );
    const stepsOf = (version: string): number[] => [
      ...new Set(episodes.filter(({ environment }) => environment.version === version).map(each => each.step)),
    ];
    expect(step).toBe(5);
    expect(stepsOf(from)).toEqual([1, 2, 3, 4]);
    expect(stepsOf(to)).toEqual([5, 6]);
  });

  test('keeps the settings with which it began, and the event names the first step that uses a change', async () => {
    await startPeer();
    const key = 'actor_rollout_ref.rollout.rollout_filter_value';
    const folder = await makeFolder(1, 5, ['actor_rollout_ref.rollout.rollout_filter_strategy=top_k', ...quick]);
    const { events, metrics } = await trained(folder, ({ control, run }) => {
      control.serveSettings(run.settings);
      atUpdate(2, () => void control.change({ [key]: 0.5, 'actor_rollout_ref.actor.optim.lr': 0.003 }, false));
    });
    const messages = events.filter(({ kind }) => kind === 'setting').map(({ message }) => message);
    expect(messages).toContain('actor_rollout_ref.actor.optim.lr 0.01 → 0.003');
    const [, first] = messages.flatMap(
      message => /filter_value 1 → 0.5, from the rollout of step (\d)$/.exec(message) ?? [],
    );
    expect(Number(first)).toBe(4);
    const ratios = metrics.map(line => Number(line['rollout/filter_kept_ratio']));
    expect(ratios.slice(0, 3)).toEqual([1, 1, 1]);
    expect(ratios.slice(3)).toEqual([0.5, 0.5]);
    expect(metrics.map(line => line['actor/lr'])).toEqual([0.01, 0.01, 0.003, 0.003, 0.003]);
  });

  test('reports its failure to the step that needs it', async () => {
    await startPeer();
    const folder = await makeFolder(2, 6, quick);
    const training = trained(folder, () =>
      atUpdate(2, () => {
        peer.fault = path =>
          path === 'asample' ? { status: 400, body: { detail: 'the sampler is broken' } } : undefined;
      }),
    );
    await expect(training).rejects.toThrow('the sampler is broken');
    const { metrics, episodes } = readRun(folder.path);
    const last = metrics.at(-1)!.step;
    expect(last).toBeGreaterThanOrEqual(2); // the steps with a rollout are trained
    expect([...new Set(episodes.map(({ step }) => step))].at(-1)).toBe(last);
  });

  test('waits for the server during an outage, with the same results', async () => {
    await startPeer();
    const expected = await trained(await makeFolder(1, 4, quick));
    const folder = await makeFolder(1, 4, quick);
    const { metrics, events } = await trained(folder, () =>
      atUpdate(2, () => {
        let cut = 0;
        peer.fault = path => (path === 'asample' && cut++ < 5 ? 'cut before' : undefined);
      }),
    );
    expect(numbersOf(metrics)).toEqual(numbersOf(expected.metrics));
    expect(events.some(({ message }) => message.endsWith('the run waits for it'))).toBe(true);
  });

  test('is discarded when an answer to an optimizer step is lost, and the run returns to its checkpoint', async () => {
    await startPeer();
    let steps = 0;
    peer.fault = path => {
      if (path !== 'optim_step' || !peer.requests.some(request => request.path === 'save_weights')) return undefined;
      return ++steps === 3 ? 'cut after' : undefined; // in step 3, whose rollout is of step 1's weights
    };
    const { code, stderr } = await document(workspace.folder, [
      ...['train', '--config-name', 'words', ...stepOverrides(5), 'trainer.test_freq=-1', ...keepAll],
      ...['workbench.engine=tinker', `workbench.engine_url=${peer.url}`, 'lora.rank=8', 'workbench.max_staleness=1'],
    ]);
    expect(code, stderr).toBe(0);
    const { status, metrics, episodes, events } = readRun(runsOf(workspace.folder).at(-1)!);
    expect(status).toMatchObject({ state: 'finished', step: 5 });
    expect(events.some(({ kind }) => kind === 'resume')).toBe(true);
    expect(metrics.map(line => line['rollout/staleness'])).toEqual([0, 1, 0, 1, 1]);
    expect([...new Set(episodes.map(({ step }) => step))]).toEqual([1, 2, 3, 4, 5]);
    expect(new Set(episodes.map(({ id }) => id)).size).toBe(episodes.length);
  });

  test('pauses the run when too many of its episodes fail, at the step that needs it', async () => {
    await startPeer();
    const folder = await makeFolder(1, 4, ['workbench.max_failed_episodes_share=0', 'workbench.live_edit=false']);
    const failing = join(workspace.folder, 'failing');
    workspace.write(
      'environments/words.ts',
      wordsEnvironment(`if (existsSync(${JSON.stringify(failing)})) throw new Error('broken');`),
    );
    const pauses: number[] = [];
    const { end, metrics } = await trained(folder, ({ control, run }) => {
      const { wait } = control;
      control.wait = (sentence, ms) => {
        pauses.push(run.journal.status.step);
        rmSync(failing);
        return wait.call(control, sentence, Math.min(ms, 1));
      };
      atUpdate(2, () => writeFileSync(failing, ''));
    });
    expect(end).toBe('finished');
    expect(pauses).toEqual([2]); // step 2 is finished, and step 3 needs its rollout
    expect(metrics.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
  });
});
