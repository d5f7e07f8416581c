// What the engine measures of a server when it connects: reductions of losses, warm-up, and whether published versions
// stay apart from the weights in training.
import { afterEach, describe, expect, test } from 'vitest';
import { probeServer, type ProbedModel, type ServerFacts } from '../../../../extension/models/tinker/server-probe';
import { endAll, load, started } from '../../../support/served-engine';
import { BigramModel } from '../../../support/bigram-model';
import { vocabSize, actorOf } from '../../../support/served-engine';

afterEach(endAll);

describe('the probe', () => {
  test.each([
    ['sum', 'sum'],
    ['mean', 'mean'],
    ['mean', 'sum'],
    ['sum', 'mean'],
  ] as const)('tells the reductions apart: %s over tokens, %s over samples', async (tokens, samples) => {
    const { engine } = await started({ tokens, samples });
    const { deviceCheck } = await engine.load(load);
    expect(deviceCheck).toContain(`whose losses are a ${samples} over samples and a ${tokens} over tokens`);
  });

  test('refuses a mean over the tokens of all samples by name', async () => {
    const { engine } = await started({ tokens: 'batch mean', samples: 'mean' });
    await expect(engine.load(load)).rejects.toThrow(
      'its losses are a mean over the tokens of all samples: use a server',
    );
  });

  test('does not count the first step of a server that warms up', async () => {
    const { engine } = await started({ warmUp: 1.7 });
    await expect(engine.load(load)).resolves.toMatchObject({ provider: 'tinker' });
  });

  test.each([
    [false, true],
    [true, false],
  ])('measures whether published versions are kept: live %s', async (live, keepsVersions) => {
    const { engine } = await started({ live });
    await engine.load(load);
    expect(engine.facts).toMatchObject({ keepsVersions } satisfies Partial<ServerFacts>);
  });

  test('does not trust a version whose log-probs are missing, or a step that moves nothing', async () => {
    const model = (moves: number): ProbedModel => {
      let steps = 0;
      return {
        step: async data => {
          const counts = data.map(({ loss_fn_inputs: { weights } }) => weights.data.reduce((sum, w) => sum + w, 0));
          steps += 1;
          return { grad_norm: counts.length * (counts[0] === 16 ? 2 : 1) };
        },
        publish: async () => 'version',
        logprobs: async samples => samples.map(({ ids }) => new Float32Array(ids.length).fill(steps * moves)),
      };
    };
    const drawn = (logprobs: number[]) => async () => ({ stop_reason: 'length', tokens: [5, 6], logprobs });
    const facts = (moves: number, logprobs: number[]) => probeServer(model(moves), drawn(logprobs), 'http://peer');
    expect(await facts(-1, [-1, -2])).toMatchObject({ keepsVersions: true });
    expect(await facts(0, [-1, -2])).toMatchObject({ keepsVersions: false });
    expect(await facts(-1, [0, 0])).toMatchObject({ keepsVersions: false });
  });

  test('leaves one model, which nothing has changed, also where a published version is the model in training', async () => {
    for (const live of [false, true]) {
      const { peer, engine } = await started({ models: 1, live });
      await engine.load(load);
      expect(peer.models.size).toBe(1);
      expect(actorOf(peer).table).toEqual(new BigramModel(vocabSize, { tokens: 'sum', samples: 'sum' }).table);
    }
  });
});
