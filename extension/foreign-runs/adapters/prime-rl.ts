// prime-rl: metrics.jsonl, to which orchestrator and trainer append several rows per step, and rollouts as verifiers'
// traces, one folder per step. `effective` has the rollouts that were trained on, `all` also the rejected ones.
// Source: prime-rl of 2026-04 to 2026-08, monitors/file.py; formats of traces: verifiers-traces.ts.
import type { Adapter, ForeignRun, RolloutUnit } from '../adapter';
import { looseRecord, milliseconds, numbersIn, recordsOf, stepOf } from '../json-rows';
import { configCount, configIn, configText, onlyRun, stem } from '../peek';
import { rowSource } from '../row-source';
import type { SourceFolder } from '../source-folder';
import { legacyRollout, tracedRollout } from '../verifiers-traces';

const traces =
  /^(.*?)\/?rollouts\/step_(\d{1,12})\/(?:(train|eval)\/(?:(all|effective)\/)?traces|(train|eval)_rollouts)\.jsonl$/;
const configs = /^(.*?)\/?configs\/(rl|orchestrator|trainer)\.(?:json|toml)$/;

const names: Record<string, string> = {
  'optim/grad_norm': 'actor/grad_norm',
  'optim/lr': 'actor/lr',
  'entropy/all/mean': 'actor/entropy',
};

export const primeRl: Adapter = {
  id: 'prime-rl',
  async find(source) {
    const roots = new Set(source.matching(traces).map(({ match }) => match[1]));
    for (const { match } of source.matching(configs)) roots.add(match[1]);
    const root = onlyRun(source, 'prime-rl', [...roots]);
    if (root === undefined) return null;
    const within = root === '' ? '' : `${root}/`;
    const hasRollouts = source.matching(traces).length > 0;
    const metrics = `${within}metrics.jsonl`;
    const hasMetrics = source.stat(metrics) !== undefined;
    const config = (await configIn(source, `${within}configs/rl.json`)) ?? {};
    return {
      trainer: { name: 'prime-rl' },
      name: configText(config, 'run.name') ?? stem(root === '' ? source.path : root),
      config: Object.keys(config).length > 0 ? { 'prime-rl': config } : {},
      totalSteps: configCount(config, 'max_steps'),
      found: [
        ...(hasMetrics ? [`metrics: ${metrics}`] : []),
        ...(hasRollouts ? [`rollouts: ${within}rollouts`] : []),
        ...(Object.keys(config).length > 0 ? [`configuration: ${within}configs/rl.json`] : []),
      ],
      missing: [
        ...(hasMetrics ? [] : ['metrics: do not set --no-monitors.file']),
        ...(hasRollouts ? [] : ['rollouts: do not set --no-monitors.file']),
      ],
      rename: renameOf,
      stepSeconds: ['time/step'],
      metrics: hasMetrics ? [rowSource(source, metrics, rowOf)] : [],
      rollouts: () => Promise.resolve({ units: unitsOf(source) }),
    } satisfies ForeignRun;
  },
};

/** Maps the metrics of the trained agent; with several environments, `agg` has their mean. */
function renameOf(name: string): string {
  const trained = /^train\/[^/]+\/effective\/[^/]+\/(reward|num_output_tokens|is_truncated)\/(mean|min|max)$/.exec(
    name,
  );
  if (trained?.[1] === 'reward') return `critic/score/${trained[2]}`;
  if (trained?.[1] === 'num_output_tokens') return `response_length/${trained[2]}`;
  if (trained?.[1] === 'is_truncated' && trained[2] === 'mean') return 'response_length/clip_ratio';
  const success = /^train\/([^/]+)\/effective\/[^/]+\/metrics\/success\/mean$/.exec(name);
  return success ? `train/${success[1]}/success` : (names[name] ?? name);
}

function rowOf(line: string): ReturnType<Parameters<typeof rowSource>[2]> {
  const record = looseRecord(line);
  const step = stepOf(record?.['step']);
  if (!record || step === undefined) return undefined;
  const time = milliseconds(record['time']);
  return { step, ...(time !== undefined && { time }), values: numbersIn(record, ['step', 'time']) };
}

/** Returns the rollouts of each step: the effective ones if they are there, else all. */
function unitsOf(source: SourceFolder): RolloutUnit[] {
  const units = new Map<string, RolloutUnit>();
  for (const { name, match } of source.matching(traces)) {
    const mode = (match[3] ?? match[5]) === 'eval' ? 'val' : 'train';
    const step = Number(match[2]);
    const id = `${mode} ${step}`;
    if (match[4] === 'all' && units.has(id)) continue; // sorted by path, `all` precedes `effective`
    units.set(id, {
      ...{ mode, step, files: [name] },
      async *read() {
        for await (const record of recordsOf(source, name))
          yield record && (tracedRollout(record) ?? legacyRollout(record));
      },
    });
  }
  return [...units.values()];
}
