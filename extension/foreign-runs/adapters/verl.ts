// verl (and the trainers made from it, RAGEN and VAGEN): metrics of the file logger, of TensorBoard or of the console
// log; rollout and validation dumps, one file of JSON lines per step. Most names of metrics are RAGEN's already.
// Source: verl 0.4 to 0.9.1, trainer/ppo/ray_trainer.py, trainer_base.py (_dump_generations), metric_utils.py,
// mismatch_helper.py (0.6), utils/tracking.py.
import { isRecord } from '../../common/json';
import { maximum } from '../../common/lists';
import type { Adapter, ForeignEpisode, ForeignRun, MetricRow, MetricSource, RolloutUnit } from '../adapter';
import { conversation } from '../chat-turns';
import { eventFolders, eventSource } from '../event-files';
import { looseRecord, numbersIn, recordsOf, stepOf } from '../json-rows';
import { configCount, configIn, configText, firstBytes, firstRecord, onlyRun, stem } from '../peek';
import { rowSource } from '../row-source';
import type { SourceFolder } from '../source-folder';

export const verl: Adapter = { id: 'verl', find: source => findVerl(source, { name: 'verl' }) };

interface Flavour {
  name: string;
  /** Sentences for what this trainer cannot write. */
  rolloutsMissing?: string;
  /** Whether other files show that this trainer wrote the folder; event files alone are those of any trainer. */
  isKnown?: boolean;
}

/** Maximum number of files that are looked at to find metrics. */
const mostPeeks = 200;

/** Returns the run that verl's writers have left in a folder; null if there is none. */
export async function findVerl(source: SourceFolder, flavour: Flavour): Promise<ForeignRun | null> {
  const dumps = await dumpFolders(source);
  const configFile = source.matching(/(?:^|\/)\.hydra\/config\.yaml$/).at(-1)?.name;
  const config = configFile === undefined ? undefined : await configIn(source, configFile);
  const isKnown = flavour.isKnown === true || dumps.length > 0 || config?.['actor_rollout_ref'] !== undefined;
  const metrics =
    (await textMetrics(source, flavour.name)) ?? (isKnown ? eventMetrics(source, flavour.name) : undefined);
  if (!isKnown && !metrics) return null;
  const train = chosenFolder(source, dumps, 'train', configText(config, 'trainer.rollout_data_dir'));
  const val = chosenFolder(source, dumps, 'val', configText(config, 'trainer.validation_data_dir'));
  const chosen = [train, val].filter(folder => folder !== undefined);
  const name =
    configText(config, 'trainer.experiment_name') ??
    (metrics && !metrics.isFolder ? stem(metrics.source.name) : undefined) ??
    stem(source.path);
  return {
    trainer: { name: flavour.name },
    name,
    config: config ?? {},
    totalSteps: configCount(config, 'trainer.total_training_steps'),
    found: [
      ...(metrics ? [`metrics: ${metrics.source.name}`] : []),
      ...chosen.map(
        ({ folder, mode }) =>
          `${mode === 'train' ? 'rollouts' : 'validation rollouts'}: ${folder === '' ? stem(source.path) : folder}`,
      ),
      ...(configFile === undefined ? [] : [`configuration: ${configFile}`]),
    ],
    missing: [
      ...(metrics ? [] : ['metrics: set trainer.logger=["console","file"] or ["console","tensorboard"]']),
      ...(train ? [] : [flavour.rolloutsMissing ?? 'rollouts: set trainer.rollout_data_dir']),
      ...(val ? [] : ['validation rollouts: set trainer.validation_data_dir']),
      ...chosen.flatMap(dump => missingFields(dump, flavour.name)),
      `token ids, log-probs and advantages: ${flavour.name} writes none`,
    ],
    rolloutFields: 'the fields input, output and score, which trainer.rollout_data_dir writes',
    rename: renameOf,
    stepSeconds: ['timing_s/step', 'perf/time_per_step'],
    metrics: metrics ? [metrics.source] : [],
    rollouts: () => Promise.resolve({ units: chosen.flatMap(folder => dumpUnits(source, folder)) }),
  };
}

/**
 * Maps verl's other names of RAGEN's metrics: the success of a validation (`acc`, in VAGEN `traj_success`; a data source
 * becomes a tag, in which `/` is `_`), the difference between sampler and training, and the names of verl 0.6 for
 * `rollout_corr`. Not mapped, because they measure something else: `num_turns` counts the messages of both sides,
 * `best@N` is a bootstrap estimate, and `perf/throughput` is per GPU but has RAGEN's name.
 */
export function renameOf(name: string): string {
  const validated = /^val-(?:core|aux)\/(.+)\/(?:acc|traj_success)\/mean@\d+$/.exec(name);
  if (validated) return `val-env/${validated[1].replaceAll('/', '_')}/success`;
  if (name === 'training/rollout_probs_diff_mean') return 'rollout_corr/prob_diff_mean';
  const corrected =
    /^mismatch\/(?:mismatch_)?(kl|k3_kl|training_ppl|rollout_ppl|rollout_is_(?:mean|std|min|max|eff_sample_size|ratio_fraction_(?:high|low)))$/.exec(
      name,
    );
  return corrected ? `rollout_corr/${corrected[1]}` : name;
}

interface DumpFolder {
  folder: string;
  mode: 'train' | 'val';
  /** The last file, and its first line. */
  file: string;
  first: Readonly<Record<string, unknown>>;
}

/** Returns what the lines of a dump lack. */
function missingFields({ file, first }: DumpFolder, trainer: string): string[] {
  return [
    ...(typeof first['score'] === 'number'
      ? []
      : [`rewards in ${file}: its lines have no number score, as verl writes`]),
    ...('acc' in first || 'traj_success' in first
      ? []
      : [`success in ${file}: return acc in the dict of the reward function (custom_reward_function.path)`]),
    ...('uid' in first
      ? []
      : [
          `prompt groups in ${file}: ${trainer === 'verl' ? 'verl writes uid from 0.9 on' : `${trainer} writes no uid`}; equal prompts are one group`,
        ]),
  ];
}

const dumpName = /^((?:.*(?=\/))?)\/?(?<![^/])(\d{1,12})\.jsonl$/;

/** Returns the folders of rollout dumps: files named by their step, with `input`, `output` and `score`. */
async function dumpFolders(source: SourceFolder): Promise<DumpFolder[]> {
  const newest = new Map<string, string>();
  for (const { name, match } of source.matching(dumpName)) newest.set(match[1], name);
  const found: DumpFolder[] = [];
  for (const [folder, name] of [...newest].slice(0, mostPeeks)) {
    const record = await firstRecord(source, name);
    if (typeof record?.['input'] !== 'string' || typeof record['output'] !== 'string') continue;
    if ('score' in record || 'gts' in record)
      found.push({ folder, mode: /val/i.test(stem(`/${folder}`)) ? 'val' : 'train', file: name, first: record });
  }
  return found;
}

/** Returns the folder of a mode: the one that the configuration names, else the newest. */
function chosenFolder(
  source: SourceFolder,
  folders: readonly DumpFolder[],
  mode: 'train' | 'val',
  configured: string | undefined,
): DumpFolder | undefined {
  const candidates = folders.filter(folder => folder.mode === mode);
  const named = configured && candidates.find(({ folder }) => stem(folder) === stem(configured));
  const newest = ({ folder }: DumpFolder): number =>
    maximum(
      source.matching(dumpName).map(({ name, match }) => (match[1] === folder ? source.stat(name)!.mtimeMs : 0)),
      0,
    );
  return named || candidates.sort((a, b) => newest(b) - newest(a))[0];
}

function dumpUnits(source: SourceFolder, { folder, mode }: DumpFolder): RolloutUnit[] {
  return source
    .matching(dumpName)
    .filter(({ match }) => match[1] === folder)
    .map(({ name, match }) => ({
      ...{ mode, step: Number(match[2]), files: [name] },
      async *read() {
        for await (const record of recordsOf(source, name)) yield record && rolloutOf(record);
      },
    }));
}

/** Converts a line of a dump; null if it is none. */
function rolloutOf(record: Record<string, unknown>): ForeignEpisode | null {
  const { input, output, score, uid, acc, traj_success, data_source } = record;
  if (typeof input !== 'string' || typeof output !== 'string' || typeof score !== 'number') return null;
  // A uid is `<prompt>_<session>_<output>`; older dumps have none, and equal inputs are one group.
  const group = typeof uid === 'string' ? uid.replace(/_\d+_\d+$/, '') : input;
  const judged = traj_success ?? acc;
  return {
    group,
    ...(typeof uid !== 'string' && { isGroupedByText: true }),
    tag: typeof data_source === 'string' ? data_source : 'rollout',
    messages: conversation(input, output),
    reward: score,
    success: typeof judged === 'boolean' ? judged : typeof judged === 'number' ? judged > 0 : null,
    metrics: numbersIn(record, ['score', 'step']),
  };
}

interface FoundMetrics {
  source: MetricSource;
  isFolder: boolean;
}

/** Returns the metrics of the file logger, else of a console log if there are no event files. */
async function textMetrics(source: SourceFolder, trainer: string): Promise<FoundMetrics | undefined> {
  const loggers: string[] = [];
  for (const { name } of source.matching(/(?:^|\/)(?!\d+\.jsonl$)[^/]*\.jsonl$/).slice(0, mostPeeks)) {
    const record = await firstRecord(source, name);
    if (stepOf(record?.['step']) !== undefined && isRecord(record?.['data'])) loggers.push(name);
  }
  const logger = onlyRun(source, trainer, loggers);
  if (logger !== undefined) return { source: rowSource(source, logger, loggerRow), isFolder: false };
  if (eventFolders(source).size > 0) return undefined;
  for (const { name } of source.matching(/\.(?:log|txt|out)$/).slice(0, mostPeeks)) {
    const text = (await firstBytes(source, name)).toString('utf8');
    if (/(?:^|\n|\s)step:\d+ - [^\s:]+:/.test(text))
      return { source: rowSource(source, name, consoleRow), isFolder: false };
  }
  return undefined;
}

function eventMetrics(source: SourceFolder, trainer: string): FoundMetrics | undefined {
  const folder = onlyRun(source, trainer, [...eventFolders(source).keys()]);
  if (folder === undefined) return undefined;
  const name = folder === '' ? 'TensorBoard event files' : folder;
  return { source: eventSource(source, name, each => each === folder), isFolder: true };
}

/** Converts a line of the file logger: `{"step", "data": {…}}`. */
function loggerRow(line: string): MetricRow | undefined {
  const record = looseRecord(line);
  const step = stepOf(record?.['step']);
  const data = record?.['data'];
  return step === undefined || !isRecord(data) ? undefined : { step, values: numbersIn(data) };
}

/** Converts a line of the console: `step:3 - actor/entropy:0.6 - …`; numbers may be written as `np.float64(0.6)`. */
function consoleRow(line: string): MetricRow | undefined {
  const start = /(?:^|\s)step:(\d{1,15}) - /.exec(line.slice(0, 4096));
  if (!start) return undefined;
  const values: Record<string, number> = {};
  for (const part of line.slice(start.index + start[0].length).split(' - ')) {
    const colon = part.lastIndexOf(':');
    const text = part
      .slice(colon + 1)
      .trim()
      .replace(/^[\w.]+\((.*)\)$/, '$1');
    const value = text === '' ? Number.NaN : Number(text);
    if (colon > 0 && Number.isFinite(value)) values[part.slice(0, colon).trim()] = value;
  }
  return { step: Number(start[1]), values };
}
