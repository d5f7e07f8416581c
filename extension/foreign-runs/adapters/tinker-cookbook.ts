// tinker-cookbook: metrics.jsonl (steps from 0 on), and summaries of rollouts per iteration. The summaries contain
// lengths, rewards, metrics and what the environment logs, but no texts. Source: tinker-cookbook 0.6.1,
// stores/training_store.py, rl/rollout_logging.py, rl/metric_util.py.
import { isRecord } from '../../common/json';
import type { Adapter, ChatMessage, ForeignEpisode, RolloutUnit } from '../adapter';
import { looseRecord, numbersIn, recordsOf, stepOf } from '../json-rows';
import { configCount, configIn, firstRecord, onlyRun, requireVersion, stem } from '../peek';
import { rowSource } from '../row-source';
import type { SourceFolder } from '../source-folder';

const summaries = /^(.*?)\/?iteration_(\d{1,12})\/(train|eval_[^/]*)_rollout_summaries\.jsonl$/;

const names: Record<string, string> = {
  'env/all/reward/total': 'critic/score/mean',
  'optim/lr': 'actor/lr',
};

export const tinkerCookbook: Adapter = {
  id: 'tinker-cookbook',
  async find(source) {
    const roots = new Set(source.matching(summaries).map(({ match }) => match[1]));
    for (const { name, match } of source.matching(/^(.*?)\/?metrics\.jsonl$/).slice(0, 200)) {
      const record = await firstRecord(source, name);
      if (record && ('progress/batch' in record || 'env/all/reward/total' in record)) roots.add(match[1]);
    }
    const root = onlyRun(source, 'tinker-cookbook', [...roots]);
    if (root === undefined) return null;
    const within = root === '' ? '' : `${root}/`;
    const hasRollouts = source.matching(summaries).length > 0;
    const metrics = `${within}metrics.jsonl`;
    const hasMetrics = source.stat(metrics) !== undefined;
    const config = await configIn(source, `${within}config.json`);
    return {
      trainer: { name: 'tinker-cookbook' },
      name: stem(root === '' ? source.path : root),
      config: config ? { 'tinker-cookbook': config } : {},
      totalSteps: Math.max(0, configCount(config, 'max_steps') - 1), // number of the last step
      found: [
        ...(hasMetrics ? [`metrics: ${metrics}`] : []),
        ...(hasRollouts ? [`summaries of rollouts: ${within}iteration_*`] : []),
        ...(config ? [`configuration: ${within}config.json`] : []),
      ],
      missing: [
        ...(hasMetrics ? [] : ['metrics: give the log_path of the run']),
        ...(hasRollouts ? [] : ['rollouts: set rollout_json_export=True']),
        'texts, token ids and log-probs: the summaries contain none',
      ],
      rolloutFields: 'the fields total_reward and steps, which rollout_json_export=True writes',
      rename: renameOf,
      stepSeconds: ['time/total'],
      metrics: hasMetrics ? [rowSource(source, metrics, rowOf)] : [],
      rollouts: () => Promise.resolve({ units: unitsOf(source) }),
      ended: async () => {
        const text = (await source.text(`${within}checkpoints.jsonl`)) ?? '';
        return text.split('\n').some(line => looseRecord(line)?.['name'] === 'final');
      },
    };
  },
};

/** Metrics of the environments in which 1 is a solved task; the second is that of `ProblemEnv`. */
const solved = ['success', 'correct'];

// Without tags that divide the groups, there is only `env/all`.
function renameOf(name: string): string {
  const success = /^env\/([^/]+)\/(?:success|correct)$/.exec(name);
  const validation = /^test\/env\/([^/]+)\/(?:success|correct)$/.exec(name);
  if (success) return `train/${success[1]}/success`;
  return validation ? `val-env/${validation[1]}/success` : (names[name] ?? name);
}

function rowOf(line: string): ReturnType<Parameters<typeof rowSource>[2]> {
  const record = looseRecord(line);
  const step = stepOf(record?.['step']); // rows without a step are summaries of the run
  return record && step !== undefined ? { step, values: numbersIn(record, ['step']) } : undefined;
}

function unitsOf(source: SourceFolder): RolloutUnit[] {
  const files = new Map<string, { mode: 'train' | 'val'; step: number; names: string[] }>();
  for (const { name, match } of source.matching(summaries)) {
    const [mode, step] = [match[3] === 'train' ? ('train' as const) : ('val' as const), Number(match[2])];
    const unit = files.get(`${mode} ${step}`) ?? { mode, step, names: [] };
    unit.names.push(name);
    files.set(`${mode} ${step}`, unit);
  }
  return [...files.values()].map(({ mode, step, names: own }) => ({
    ...{ mode, step, files: own },
    async *read() {
      for (const name of own) for await (const record of recordsOf(source, name)) yield record && rolloutOf(record);
    },
  }));
}

function rolloutOf(record: Record<string, unknown>): ForeignEpisode | null {
  const { schema_version, group_idx, total_reward, steps, tags, split, trajectory_metrics } = record;
  requireVersion('tinker-cookbook', 'schema_version', schema_version, [1]);
  if (typeof total_reward !== 'number' || !Array.isArray(steps)) return null;
  const turns = steps.filter(isRecord);
  const own = isRecord(trajectory_metrics) ? numbersIn(trajectory_metrics) : {};
  const last = metricsIn(turns.at(-1) ?? {});
  const isSolved = solved.map(key => own[key] ?? last[key]).find(value => value !== undefined);
  const [tag] = Array.isArray(tags) ? (tags as unknown[]) : [];
  return {
    group: `${String(split)} ${String(group_idx)}`,
    tag: typeof tag === 'string' ? tag : 'rollout',
    messages: turns.flatMap(messagesOf),
    reward: total_reward,
    success: isSolved === undefined ? null : isSolved > 0,
    terminated: turns.some(turn => turn['episode_done'] === true),
    metrics: { ...stepMetrics(turns), ...own },
    hasTexts: false,
  };
}

const metricsIn = ({ metrics }: Record<string, unknown>): Record<string, number> =>
  isRecord(metrics) ? numbersIn(metrics) : {};

/** Returns the means of the metrics of the turns that have them, as the trainer's own averages do. */
function stepMetrics(turns: readonly Record<string, unknown>[]): Record<string, number> {
  const values = new Map<string, number[]>();
  for (const turn of turns)
    for (const [key, value] of Object.entries(metricsIn(turn))) values.set(key, [...(values.get(key) ?? []), value]);
  return Object.fromEntries([...values].map(([key, all]) => [key, all.reduce((sum, x) => sum + x, 0) / all.length]));
}

/** A step as an observation of known length and what the environment logged about the response. */
function messagesOf({ ob_len, ac_len, reward, logs }: Record<string, unknown>): ChatMessage[] {
  const logged = isRecord(logs) ? Object.entries(logs).map(([key, value]) => `${key}: ${String(value)}`) : [];
  const length = (tokens: unknown): string => (typeof tokens === 'number' ? `${tokens} tokens` : 'tokens');
  return [
    { role: 'user', content: `[${length(ob_len)}; the trainer stored no text]` },
    {
      role: 'assistant',
      content: logged.length > 0 ? logged.join('\n') : `[${length(ac_len)}; the trainer stored no text]`,
      ...(typeof reward === 'number' && Number.isFinite(reward) && { reward }),
    },
  ];
}
