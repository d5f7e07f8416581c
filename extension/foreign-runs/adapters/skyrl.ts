// SkyRL: rollouts of evaluations, one file per data source and step, and metrics in TensorBoard. Its training rollouts
// are torch pickles, which are not read. Source: skyrl 0.4.0, evaluate.py, trainer_utils.py, tracking.py.
import { isRecord } from '../../common/json';
import type { Adapter, ForeignEpisode, MetricSource, RolloutUnit } from '../adapter';
import { conversation } from '../chat-turns';
import { eventFolders, eventSource, foldersWithTag } from '../event-files';
import { numbersIn, recordsOf } from '../json-rows';
import { firstRecord, onlyRun, stem } from '../peek';
import type { SourceFolder } from '../source-folder';

const dumps = /^(.*?)\/?dumped_evals\/(?:global_step_(\d{1,12})_evals|eval_only)\/([^/]+)\.jsonl$/;
const aggregated = 'aggregated_results';

const names: Record<string, string> = {
  'reward/avg_raw_reward': 'critic/score/mean',
  'policy/policy_entropy': 'actor/entropy',
  'policy/grad_norm': 'actor/grad_norm',
  'policy/policy_lr': 'actor/lr',
  'generate/avg_num_tokens': 'response_length/mean',
};

export const skyrl: Adapter = {
  id: 'skyrl',
  async find(source) {
    const roots = (await hasDumps(source)) ? new Set(source.matching(dumps).map(({ match }) => match[1])) : [];
    const root = onlyRun(source, 'SkyRL', [...roots]);
    // A folder with evaluations has this run's event files; elsewhere, their tags show that SkyRL wrote them.
    const folders =
      root === undefined ? await foldersWithTag(source, /reward\/avg_raw_reward/) : [...eventFolders(source).keys()];
    const events = onlyRun(source, 'SkyRL', folders);
    if (root === undefined && events === undefined) return null;
    return {
      trainer: { name: 'SkyRL' },
      name: stem(source.path),
      config: {},
      totalSteps: 0,
      found: [
        ...(root === undefined ? [] : [`evaluations: ${root === '' ? '' : `${root}/`}dumped_evals`]),
        ...(events === undefined ? [] : [`metrics: ${events === '' ? 'TensorBoard event files' : events}`]),
      ],
      missing: [
        ...(root === undefined
          ? ['evaluations: set trainer.dump_eval_results=true, and attach trainer.export_path']
          : []),
        ...(events === undefined
          ? ['metrics: set trainer.logger="tensorboard" and TENSORBOARD_DIR to a folder of this run']
          : []),
        'training rollouts: SkyRL writes them as torch pickles only (trainer.dump_data_batch)',
        'token ids and log-probs: they are in these pickles only',
      ],
      rolloutFields: 'the fields input_prompt, output_response and score, which trainer.dump_eval_results=true writes',
      rename: name => names[name] ?? name,
      stepSeconds: ['timing/step'],
      metrics: [
        aggregatedSource(source),
        ...(events === undefined ? [] : [eventSource(source, events, each => each === events)]),
      ],
      rollouts: () => Promise.resolve({ units: unitsOf(source) }),
    };
  },
};

async function hasDumps(source: SourceFolder): Promise<boolean> {
  for (const { name, match } of source.matching(dumps).slice(0, 20)) {
    const record = match[3] === aggregated ? undefined : await firstRecord(source, name);
    if (record && 'input_prompt' in record && 'output_response' in record) return true;
  }
  return false;
}

/** One line of metrics per evaluation. */
function aggregatedSource(source: SourceFolder): MetricSource {
  const seen = new Set<string>();
  return {
    name: aggregated,
    async read(add) {
      for (const { name, match } of source.matching(dumps)) {
        const stats = source.stat(name);
        const key = `${name} ${stats?.size} ${stats?.mtimeMs}`;
        if (match[3] !== aggregated || seen.has(key)) continue;
        const record = await firstRecord(source, name);
        if (!record) continue;
        seen.add(key);
        add({ step: Number(match[2] ?? 0), values: numbersIn(record) });
      }
      return false;
    },
  };
}

/** The files of an evaluation, one per data source, form the validation of its step. */
function unitsOf(source: SourceFolder): RolloutUnit[] {
  const files = new Map<number, string[]>();
  for (const { name, match } of source.matching(dumps)) {
    if (match[3] === aggregated) continue;
    const step = Number(match[2] ?? 0);
    const names = files.get(step);
    if (names) names.push(name);
    else files.set(step, [name]);
  }
  return [...files].map(([step, names]) => ({
    ...{ mode: 'val', step, files: names },
    async *read() {
      for (const name of names)
        for await (const record of recordsOf(source, name)) yield record && rolloutOf(record, stem(name));
    },
  }));
}

function rolloutOf(record: Record<string, unknown>, file: string): ForeignEpisode | null {
  const { input_prompt, output_response, score, stop_reason, env_class, env_extras, data_source } = record;
  if (typeof input_prompt !== 'string' || typeof output_response !== 'string') return null;
  // A list has one score per token.
  const parts = Array.isArray(score) ? (score as unknown[]) : [score];
  if (!parts.every(part => typeof part === 'number')) return null;
  const extra = isRecord(env_extras) && isRecord(env_extras['extra_info']) ? env_extras['extra_info'] : {};
  const { index } = extra;
  return {
    group: `${String(data_source ?? file)} ${typeof index === 'number' ? index : input_prompt}`,
    tag: typeof env_class === 'string' ? env_class : file,
    messages: conversation(input_prompt, output_response),
    reward: parts.reduce((sum, part) => sum + part, 0),
    success: null,
    terminated: stop_reason === 'stop',
    truncated: stop_reason === 'length',
    ...(Number.isSafeInteger(index) && { seed: index as number }),
  };
}
