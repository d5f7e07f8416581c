// RAGEN: training as verl's (verl.ts), and the rollouts of evaluations, `val_rollouts_<time>.jsonl`.
// Source: RAGEN of 2026-04, ragen/llm_agent/agent_proxy.py; its training dumps and its file logger do not work there.
import { counted } from '../../common/numbers';
import { isRecord } from '../../common/json';
import type { Adapter, ForeignEpisode, ForeignRun, RolloutUnit } from '../adapter';
import { chatMessages } from '../chat-turns';
import { foldersWithTag } from '../event-files';
import { numbersIn, recordsOf } from '../json-rows';
import { firstBytes, firstRecord, stem } from '../peek';
import type { SourceFolder } from '../source-folder';
import { findVerl } from './verl';

/** Names of configurations and metrics that only RAGEN uses. */
const own = /es_manager:|rollout\/in_group_reward_std|rollout\/filter_kept_ratio|collapse_\w+_sample\//;
const evaluations = /(?:^|\/)val_rollouts_[^/]*\.jsonl$/;

export const ragen: Adapter = {
  id: 'ragen',
  async find(source) {
    const files = await evaluationFiles(source);
    const isKnown = (await foldersWithTag(source, own)).length > 0;
    if (files.length === 0 && !isKnown && !(await hasRagenNames(source))) return null;
    const training = await findVerl(source, {
      ...{ name: 'RAGEN', isKnown },
      rolloutsMissing: 'training rollouts: RAGEN of 2026-04 cannot write them (trainer.rollout_data_dir fails)',
    });
    return files.length === 0 ? training : withEvaluations(source, training, files);
  },
};

function withEvaluations(source: SourceFolder, training: ForeignRun | null, files: string[]): ForeignRun {
  const run: ForeignRun = training ?? {
    trainer: { name: 'RAGEN' },
    name: stem(source.path),
    config: {},
    totalSteps: 0,
    found: [],
    missing: ['metrics: the files of an evaluation contain none'],
    metrics: [],
    rollouts: () => Promise.resolve({ units: [] }),
  };
  return {
    ...run,
    rolloutFields: run.rolloutFields ?? 'the fields messages and metadata.total_reward',
    found: [...run.found, `evaluations: ${counted(files.length, 'file')} val_rollouts_*.jsonl`],
    async rollouts() {
      const { units } = await run.rollouts();
      // The files are named by their time; the n-th evaluation is shown as step n.
      const evaluated = source.matching(evaluations).map(({ name }, i): RolloutUnit => ({
        ...{ mode: 'val', step: i + 1, files: [name] },
        async *read() {
          for await (const record of recordsOf(source, name)) yield record && rolloutOf(record);
        },
      }));
      return { units: [...units.filter(({ mode }) => mode === 'train'), ...evaluated] };
    },
  };
}

async function evaluationFiles(source: SourceFolder): Promise<string[]> {
  const found: string[] = [];
  for (const { name } of source.matching(evaluations)) {
    const record = found.length === 0 ? await firstRecord(source, name) : undefined;
    if (found.length > 0 || (Array.isArray(record?.['messages']) && isRecord(record['metadata']))) found.push(name);
  }
  return found;
}

/** Whether a log or a configuration has names that only RAGEN uses. */
async function hasRagenNames(source: SourceFolder): Promise<boolean> {
  const files = source.matching(/(?:\.hydra\/config\.yaml|(?<!\/\d+)\.jsonl|\.log)$/).slice(0, 100);
  for (const { name } of files) if (own.test((await firstBytes(source, name)).toString('utf8'))) return true;
  return false;
}

function rolloutOf(record: Record<string, unknown>): ForeignEpisode | null {
  const { messages, metadata, custom_id } = record;
  if (!isRecord(metadata) || !Array.isArray(messages)) return null;
  const { total_reward, group_id, truncated } = metadata;
  if (typeof total_reward !== 'number') return null;
  // `success` itself is always false in RAGEN's files; `<tag>/success` is right.
  const success = Object.entries(metadata).find(([key]) => key.endsWith('/success'));
  return {
    group: String(group_id ?? custom_id),
    tag: success?.[0].slice(0, -'/success'.length) ?? 'rollout',
    messages: chatMessages(messages),
    reward: total_reward,
    success: typeof success?.[1] === 'number' ? success[1] > 0 : null,
    truncated: truncated === true,
    metrics: numbersIn(metadata, ['env_id', 'group_id', 'total_reward', 'success', 'truncated']),
  };
}
