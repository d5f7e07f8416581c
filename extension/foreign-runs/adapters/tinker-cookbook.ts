// tinker-cookbook: metrics.jsonl (steps from 0 on), and summaries of rollouts per iteration. The summaries contain
// lengths, rewards and what the environment logs, but no texts. Source: tinker-cookbook 0.6.1, stores/training_store.py,
// rl/rollout_logging.py.
import { isRecord } from '../../common/json';
import type { Adapter, ChatMessage, ForeignEpisode, RolloutUnit } from '../adapter';
import { looseRecord, numbersIn, recordsOf, rowSource, stepOf } from '../json-rows';
import { configIn, firstRecord, onlyRun, requireVersion, stem } from '../peek';
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
      totalSteps: 0,
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

function renameOf(name: string): string {
  const success = /^env\/(?!all\/)([^/]+)\/success$/.exec(name);
  const validation = /^test\/env\/([^/]+)\/success$/.exec(name);
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
  const metrics = isRecord(trajectory_metrics) ? numbersIn(trajectory_metrics) : {};
  const [tag] = Array.isArray(tags) ? (tags as unknown[]) : [];
  return {
    group: `${String(split)} ${String(group_idx)}`,
    tag: typeof tag === 'string' ? tag : 'rollout',
    messages: steps.filter(isRecord).flatMap(messagesOf),
    reward: total_reward,
    success: 'success' in metrics ? metrics['success'] > 0 : null,
    terminated: steps.some(step => isRecord(step) && step['episode_done'] === true),
    metrics,
    hasTexts: false,
  };
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
