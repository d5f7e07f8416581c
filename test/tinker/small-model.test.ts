// The bundled model ragen-small on a real server: SkyRL's JAX backend loads the very folder that is shipped, and a run of
// a preset trains it there. The tokens that the server sampled have the same log-probs in the local engine, before and
// after training. Prepared by test/tinker/install.mjs.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PolicyEngine } from '../../extension/models/policy-engine';
import type { Episode } from '../../extension/run-data/episode';
import { plainLoad } from '../support/small-models';
import { temporaryFolder } from '../support/temporary-folder';
import { ragen, readRun, runsOf } from '../support/terminal';
import { root } from '../support/workspace';
import { installed, RealServer } from './real-server';

const model = join(root, 'media/models/ragen-small');
const steps = 2;
/** Few and short episodes, because the server compiles each shape of a batch; all groups are trained on. */
const settings = [
  ...['lora.rank=8', 'actor_rollout_ref.actor.optim.lr=3e-3', 'actor_rollout_ref.rollout.rollout_filter_value=1'],
  ...[
    `trainer.total_training_steps=${steps}`,
    'trainer.save_freq=1',
    `workbench.keep_checkpoints=${steps}`,
    'trainer.test_freq=-1',
  ],
  ...['collapse_detection.first_turn_enabled=False', 'trainer.val_before_train=False'],
  ...['ppo_mini_batch_size=8', 'micro_batch_size_per_gpu=8', 'agent_proxy.max_turn=1'],
  ...['es_manager.train.env_groups=2', 'es_manager.train.group_size=4', 'es_manager.train.env_configs.n_groups=[2]'],
];

describe.skipIf(!installed)(`a real Tinker server${installed ? '' : ' (not installed: needs Python 3.12)'}`, () => {
  const workspace = temporaryFolder();
  const server = new RealServer(model);
  beforeAll(() => server.start());
  afterAll(() => server.remove());

  test('a run trains ragen-small on it, and the local engine gives its log-probs', async () => {
    const folder = workspace();
    const engine = ['workbench.engine=tinker', `workbench.engine_url=${server.url}`];
    const said = await ragen(folder, ['train', '--config-name', 'quickstart-frozen-lake', ...engine, ...settings]);
    expect(said.code, said.stderr).toBe(0);
    const [run] = runsOf(folder);
    const { metrics, episodes, checkpoints, status } = readRun(run);
    expect(status).toMatchObject({ state: 'finished', step: steps });
    for (const key of ['train/SmallFrozenLake/success', 'critic/score/mean', 'actor/pg_loss', 'actor/grad_norm'])
      expect(metrics.filter(line => Number.isFinite(line[key])).length, key).toBe(steps);
    expect(checkpoints).toHaveLength(steps);

    const trained = episodes.filter(({ mode }) => mode === 'train');
    const local = async (step: number, adapterFolder: string | null): Promise<number> => {
      const twin = new PolicyEngine();
      await twin.load({ ...plainLoad, modelFolder: model, adapterFolder });
      const own = trained.filter(each => each.step === step);
      expect(own).toHaveLength(8);
      return furthest(twin, own);
    };
    // Step 1 samples with a new adapter, which changes nothing; step 2 with the adapter of the checkpoint of step 1.
    const adapter = join(run, 'checkpoints', checkpoints[steps - 2]);
    expect(await local(1, null)).toBeLessThan(2e-5);
    expect(await local(steps, adapter)).toBeLessThan(2e-5);
    expect(await local(steps, null)).toBeGreaterThan(1e-3);
  });
});

/** Returns the largest difference between stored log-probs of sampled tokens and those that an engine computes. */
async function furthest(engine: PolicyEngine, episodes: readonly Episode[]): Promise<number> {
  const samples = episodes.map(({ tokens }) => ({
    ids: Int32Array.from(tokens.ids),
    mask: Uint8Array.from(tokens.mask),
  }));
  const { logprobs } = await engine.score('actor', samples, { maxTokens: 4096, maxRows: 16 }, 1);
  const differences = episodes.flatMap(({ tokens }, i) =>
    tokens.logprobs.flatMap((sampled, t) => (sampled === null ? [] : [Math.abs(sampled - logprobs[i][t])])),
  );
  expect(differences.length).toBeGreaterThan(100);
  return Math.max(...differences);
}
