// Leaderboards: which evaluations share a table, why others do not, the order of rows, and the formats.
import { describe, expect, it } from 'vitest';
import { evaluationSchema, type Evaluation } from '../../../extension/run-data/evaluation-file';
import { leaderboardOf, type EvaluatedRun } from '../../../extension/run-data/leaderboard';
import { leaderboardCsv, leaderboardMarkdown, leaderboardTexts } from '../../../extension/run-data/leaderboard-texts';

const estimate = (mean: number) => ({ mean, low: mean - 0.05, high: mean + 0.05 });
const success = (mean: number) => ({ groups: 4, episodes: 32, success: estimate(mean), pass_at: {} });

interface Given {
  id: string;
  mean?: number;
  model?: string;
  config?: Record<string, unknown>;
  evaluation?: Partial<Evaluation>;
}

const config = {
  seed: { train: 1, val: 123 },
  trainer: { validation_steps: 1, experiment_name: 'x' },
  agent_proxy: { max_turn: 5, enable_think: true },
  es_manager: { train: { env_groups: 8 }, val: { env_groups: 4, group_size: 8, env_configs: { tags: ['lake'] } } },
  custom_envs: { lake: { env_type: 'frozen_lake', max_workers: 1, env_config: { size: 4 } } },
  actor_rollout_ref: {
    actor: { optim: { lr: 0.1 } },
    rollout: { response_length: 64, val_kwargs: { do_sample: true, temperature: 0.5, top_p: 1, top_k: -1 } },
  },
};

function evaluated({
  id,
  mean = 0.5,
  model = 'ragen-tiny',
  config: changed = {},
  evaluation = {},
}: Given): EvaluatedRun {
  const tags = { lake: { ...success(mean), failed_environments: 0, versions: ['v1'] } };
  return {
    name: id,
    manifest: {
      ...{ id, name: id, created: `2026-01-0${id.length}`, config: { ...config, ...changed } },
      model: { path: model, sha256: '', parameters: 1000 },
    },
    evaluation: evaluationSchema.parse({
      ...{ run: id, created: '', group_size: 8, overall: success(mean), tags, generated_tokens: 5000, wall_s: 10 },
      ...evaluation,
    }),
  };
}

describe('evaluations share a table', () => {
  it('if they differ only in the model, in the name and in what concerns training', () => {
    const other = {
      trainer: { validation_steps: 1, experiment_name: 'y' },
      seed: { train: 7, val: 123 },
      custom_envs: { lake: { ...config.custom_envs.lake, max_workers: 4 } },
    };
    const [table, ...more] = leaderboardOf([
      evaluated({ id: 'a', mean: 0.3 }),
      evaluated({ id: 'b', mean: 0.7, model: '/home/me/.ragen/runs/r1/checkpoints/step-000040', config: other }),
      evaluated({ id: 'c', mean: 0.5, model: '/data/models/Qwen' }),
    ]);
    expect(more).toEqual([]);
    expect(table.rows.map(({ model, run }) => [run, model])).toEqual([
      ['b', 'r1 step-000040'],
      ['c', 'Qwen'],
      ['a', 'ragen-tiny'],
    ]);
  });

  it.each([
    ['the first seed', { config: { seed: { train: 1, val: 124 } } }, 'seed.val: 124 instead of 123'],
    [
      'the number of episodes',
      { config: { es_manager: { val: { ...config.es_manager.val, group_size: 4 } } } },
      'es_manager.val.group_size: 4 instead of 8',
    ],
    [
      'the turn protocol',
      { config: { agent_proxy: { ...config.agent_proxy, max_turn: 9 } } },
      'agent_proxy.max_turn: 9 instead of 5',
    ],
    [
      'an environment',
      { config: { custom_envs: { lake: { env_type: 'frozen_lake', env_config: { size: 8 } } } } },
      'custom_envs.lake.env_config.size: 8 instead of 4',
    ],
    [
      'the version of an environment',
      { evaluation: { tags: { lake: { ...success(0.5), failed_environments: 0, versions: ['v2'] } } } },
      'version of lake: v2 instead of v1',
    ],
    [
      'sampling',
      { config: { actor_rollout_ref: { rollout: { response_length: 64, val_kwargs: { do_sample: false } } } } },
      'sampling: temperature: 0 instead of 0.5',
    ],
  ])('unless they differ in %s, which the other table names', (_, change: Partial<Given>, difference) => {
    const tables = leaderboardOf([evaluated({ id: 'a' }), evaluated({ id: 'b' }), evaluated({ id: 'cc', ...change })]);
    expect(tables.map(({ rows }) => rows.length)).toEqual([2, 1]);
    expect(tables[0].differences).toEqual([]);
    expect(tables[1].differences).toEqual([difference]);
  });

  it('with a model behind an API if the requests have the same sampling', () => {
    const api = (generation_kwargs: Record<string, unknown>, id: string): EvaluatedRun =>
      evaluated({
        id,
        config: { model_config: { model_name: 'gpt' }, model_info: { gpt: { generation_kwargs } } },
        evaluation: { api: { input_tokens: 9000, output_tokens: 5000, cost: 0.25 } },
      });
    const [same, other] = leaderboardOf([evaluated({ id: 'a' }), api({ temperature: 0.5 }, 'b'), api({}, 'c')]);
    expect(same.rows.map(({ model, cost }) => [model, cost])).toEqual([
      ['ragen-tiny', null],
      ['gpt', 0.25],
    ]);
    expect(other.differences).toEqual(['sampling: temperature: the service’s default instead of 0.5']);
  });
});

describe('the formats', () => {
  const failed = { lake: { ...success(0.5), success: null, failed_environments: 3, versions: ['v1'] } };
  const tables = leaderboardOf([
    evaluated({ id: 'a', mean: 0.25 }),
    evaluated({ id: 'b|<b>', evaluation: { tags: failed, overall: { ...success(0), success: null } } }),
  ]);

  it('show success with its interval, and a dash where no episode counts', () => {
    const { heads, rows } = leaderboardTexts(tables[0]);
    expect(heads).toEqual(['Model', 'lake', 'Episodes', 'Tokens', 'Input tokens', 'Cost', 'Run']);
    expect(rows[0]).toEqual(['ragen-tiny', '25.0 % (20.0–30.0)', '32', '5,000', '–', '–', 'a']);
    expect(rows[1].slice(1, 3)).toEqual(['–', '32 (3 failed)']);
  });

  it('write one line of CSV per evaluation and environment, with full numbers', () => {
    const lines = leaderboardCsv(tables).trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[1]).toBe('1,ragen-tiny,lake,32,0.25,0.2,0.3,5000,,,10,a,2026-01-01');
  });

  it('escape texts in Markdown', () => {
    expect(leaderboardMarkdown(tables)).toContain('b\\|&lt;b&gt;');
  });
});
