// prime-rl: metrics.jsonl, to which orchestrator and trainer append several rows per step, and rollouts as verifiers'
// traces, one folder per step. `all` has the rollouts that arrived during the step, `effective` those that it trained
// on; a rollout may be trained on some steps after it arrived. Rollouts that no step trained on are shown as filtered.
// Source: prime-rl of 2026-04 to 2026-08, monitors/file.py, orchestrator/train_sink.py; formats of traces:
// verifiers-traces.ts.
import type { Adapter, ForeignEpisode, ForeignRun, RolloutUnit } from '../adapter';
import { looseRecord, milliseconds, numbersIn, recordsOf, stepOf } from '../json-rows';
import { configCount, configIn, configText, onlyRun, stem } from '../peek';
import { rowSource } from '../row-source';
import type { SourceFolder } from '../source-folder';
import { legacyRollout, tracedRollout } from '../verifiers-traces';

const traces =
  /^(.*?)\/?rollouts\/step_(\d{1,12})\/(?:(train|eval)\/(?:(all|effective)\/)?traces|(train|eval)_rollouts)\.jsonl$/;
/** Where later versions, which are not read, store rollouts. */
const laterTraces = /(?:^|\/)traces\/(?:step_\d+\/(?:train|eval)\/traces\.jsonl|stream\/\d+\.jsonl)/;
/** Number of steps after its arrival in which a rollout is looked for before it counts as filtered. */
const mostLag = 2;
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
        ...(hasRollouts ? [] : [missingRollouts(source)]),
      ],
      rolloutFields: 'the nodes and rewards of a trace, which are written unless --no-monitors.file is set',
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

const missingRollouts = (source: SourceFolder): string =>
  source.matching(laterTraces).length > 0
    ? 'rollouts: the known versions are those of 2026-04 to 2026-08, which store them in rollouts/step_N, but this version stores them in traces'
    : 'rollouts: do not set --no-monitors.file';

interface StepFiles {
  mode: 'train' | 'val';
  step: number;
  /** File of a version that has only one file per step and mode. */
  only?: string;
  all?: string;
  effective?: string;
}

/** Returns the rollouts of each step: of validations the effective ones if they are there, else all. */
function unitsOf(source: SourceFolder): RolloutUnit[] {
  const steps = new Map<string, StepFiles>();
  for (const { name, match } of source.matching(traces)) {
    const mode = (match[3] ?? match[5]) === 'eval' ? 'val' : 'train';
    const step = Number(match[2]);
    const found = steps.get(`${mode} ${step}`) ?? { mode, step };
    found[(match[4] ?? 'only') as 'only' | 'all' | 'effective'] = name;
    steps.set(`${mode} ${step}`, found);
  }
  const trained = [...steps.values()].filter(({ mode, effective }) => mode === 'train' && effective !== undefined);
  return [...steps.values()].map(files => {
    const { mode, step, only, all, effective } = files;
    const name = effective ?? all ?? only!;
    if (mode === 'val' || all === undefined)
      return {
        ...{ mode, step, files: [name] },
        async *read() {
          for await (const record of recordsOf(source, name)) yield rolloutOf(record, effective ? true : null);
        },
      };
    const later = trained.filter(other => other.step > step && other.step <= step + mostLag);
    const isDecided = trained.some(other => other.step >= step + mostLag);
    const others = later.map(other => other.effective!);
    return {
      ...{ mode, step, files: [all, ...(effective === undefined ? [] : [effective]), ...others] },
      async *read() {
        const ids = new Set<unknown>();
        if (effective !== undefined)
          for await (const record of recordsOf(source, effective)) {
            ids.add(record?.['id']);
            yield rolloutOf(record, true);
          }
        for (const other of others) for await (const record of recordsOf(source, other)) ids.add(record?.['id']);
        for await (const record of recordsOf(source, all)) {
          const isTrained = record !== null && ids.has(record['id']);
          if (!isTrained) yield rolloutOf(record, isDecided ? false : null);
        }
      },
    };
  });
}

/** Converts a line of a file of rollouts; null if it is none. A rollout that failed is never trained on. */
function rolloutOf(record: Record<string, unknown> | null, kept: boolean | null): ForeignEpisode | null {
  const rollout = record && (tracedRollout(record) ?? legacyRollout(record));
  return rollout && { ...rollout, kept: rollout.error === undefined ? kept : false };
}
