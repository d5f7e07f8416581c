// verifiers without a trainer: the rollouts of an evaluation, shown as the validation of step 0. Before 0.4, metadata.json
// has its results; of 0.4, they are derived from the rollouts.
// Source: verifiers 0.4.0 (traces.jsonl) and earlier releases (results.jsonl with metadata.json).
import { isRecord } from '../../common/json';
import type { Adapter, ForeignEpisode, MetricSource } from '../adapter';
import { numbersIn, recordsOf } from '../json-rows';
import { configCount, configIn, configText, configValue, firstRecord, onlyRun, stem } from '../peek';
import type { SourceFolder } from '../source-folder';
import { legacyRollout, tracedRollout } from '../verifiers-traces';

const files = /^(?!(?:.*\/)?rollouts\/step_)(?:.*\/)?(?:traces|results)\.jsonl$/;

export const verifiers: Adapter = {
  id: 'verifiers',
  async find(source) {
    const found: string[] = [];
    for (const { name } of source.matching(files).slice(0, 1000)) {
      const record = await firstRecord(source, name);
      const hasRollout =
        Array.isArray(record?.['traces']) || (record && 'example_id' in record && 'completion' in record);
      if (hasRollout || (await hasBegun(source, name))) found.push(name);
    }
    const name = onlyRun(source, 'verifiers', found);
    if (name === undefined) return null;
    const folder = name.includes('/') ? name.slice(0, name.lastIndexOf('/')) : '';
    const within = folder === '' ? '' : `${folder}/`;
    const about = (await configIn(source, `${within}metadata.json`)) ?? (await evalConfig(source, within)) ?? {};
    const env = configText(about, 'env_id');
    return {
      trainer: { name: 'verifiers' },
      name: stem(folder === '' ? source.path : folder),
      config: Object.keys(about).length > 0 ? { verifiers: about } : {},
      totalSteps: 0,
      evaluation: { episodes: plannedRollouts(about) },
      found: [`rollouts: ${name}`],
      missing: ['metrics over steps: an evaluation has none'],
      rolloutFields: 'the nodes and rewards of a trace, or prompt, completion and reward',
      metrics: [metadataSource(source, `${within}metadata.json`)],
      rollouts: () =>
        Promise.resolve({
          units: [
            {
              ...{ mode: 'val', step: 0, files: [name] },
              async *read() {
                for await (const record of recordsOf(source, name))
                  yield record && (tracedRollout(record) ?? namedAs(env, legacyRollout(record)));
              },
            },
          ],
        }),
    };
  },
};

/** The number of prompts times that of rollouts; 0 if either is unknown. */
function plannedRollouts(about: Record<string, unknown>): number {
  const [prompts] = ['num_examples', 'num_tasks', 'env.taskset.num_tasks']
    .map(path => configCount(about, path))
    .filter(count => count > 0);
  const rollouts = configCount(about, 'rollouts_per_example') || configCount(about, 'num_rollouts');
  return (prompts ?? 0) * rollouts;
}

/** A rollout with the environment's id as its tag; a row of version 0 names only the task of a group of environments. */
const namedAs = (env: string | undefined, rollout: ForeignEpisode | null): ForeignEpisode | null =>
  rollout && env !== undefined && rollout.tag === 'default' ? { ...rollout, tag: env } : rollout;

/** Whether a file is that of an evaluation without a finished rollout: verifiers creates it empty, after the configuration. */
async function hasBegun(source: SourceFolder, name: string): Promise<boolean> {
  if (!name.endsWith('traces.jsonl') || source.stat(name)?.size !== 0) return false;
  const config = await evalConfig(source, name.slice(0, -'traces.jsonl'.length));
  return typeof configValue(config, 'env.taskset.id') === 'string';
}

const evalConfig = async (source: SourceFolder, within: string): Promise<Record<string, unknown> | undefined> =>
  (await configIn(source, `${within}configs/resolved/eval.json`)) ?? configIn(source, `${within}configs/eval.json`);

/** The results in metadata.json, as metrics of step 0. */
function metadataSource(source: SourceFolder, name: string): MetricSource {
  return {
    name,
    async read(add) {
      const about = await source.json(name);
      if (!isRecord(about)) return false;
      const metrics = isRecord(about['avg_metrics']) ? numbersIn(about['avg_metrics']) : {};
      const env = typeof about['env_id'] === 'string' ? about['env_id'] : 'rollout';
      const passed = isRecord(about['pass_at_k']) ? numbersIn(about['pass_at_k']) : {};
      const { avg_reward, avg_error } = about;
      const values = {
        ...numbersIn(about, [
          'num_examples',
          'rollouts_per_example',
          'time',
          'pass_threshold',
          'avg_reward',
          'avg_error',
        ]),
        ...(typeof avg_reward === 'number' && { 'val-env/charts/avg_episode_return': avg_reward }),
        ...(typeof avg_error === 'number' && { 'val-env/env_error_rate': avg_error }),
        ...Object.fromEntries(Object.entries(metrics).map(([key, value]) => [`val-env/${env}/${key}`, value])),
        ...Object.fromEntries(Object.entries(passed).map(([k, value]) => [`val-env/${env}/pass@${k}`, value])),
      };
      add({ step: 0, values });
      return false;
    },
  };
}
