// The facts of a report: what each run is, the results of groups of runs, the configuration keys in which groups differ,
// environments with their versions, machines, and events.
import type { ReportTable, ReportTextBlock } from '../../../envs/api/plugins/report';
import { formatDuration, formatValue, type Unit } from '../../common/format-values';
import { formatNumber, formatPercent } from '../../common/numbers';
import { intervalSeeds, type Estimate } from '../../common/mean-estimate';
import { unitOf } from '../charts/catalogue';
import { outcomes } from '../charts/group-curves';
import { metricName } from '../charts/metric-names';
import type { ComparedGroup } from '../compared-runs';
import type { Manifest } from '../run-manifest';
import { placeEvents, type MarkKind } from '../event-marks';
import { endingFacts, endingOf } from '../run-ending';
import { isInterrupted, progressOf } from '../run-progress';
import { ranVersions } from '../version-effect';
import type { DrawnRun } from './report-charts';
import type { ReportedRun } from './reported-run';

/** Most groups of runs beside each other in a table, so that the table fits on a page. */
const mostColumns = 5;
/** Most events of a run in the list. */
const mostEvents = 60;

/** Returns the name of a file or folder without its parent folders, which are private to a machine. */
export const withoutFolders = (path: string): string =>
  /^([/\\~]|[A-Za-z]:)/.test(path) ? (path.split(/[/\\]/).findLast(part => part !== '') ?? path) : path;

/** Returns a model's name, with the commit of a hub model. */
const nameOf = ({ path, revision }: Manifest['model']): string =>
  `${withoutFolders(path)}${revision === undefined ? '' : ` @ ${revision}`}`;

/**
 * Returns what a run is: state, steps, validation, cost, trainer, model, seeds and identity. Facts that another trainer did
 * not store are left out.
 */
export function runFacts({ run, series }: DrawnRun): ReportTextBlock {
  const { manifest, status, events, checkpoints, live } = run;
  const { model, teacher, trainer } = manifest;
  const seeds = Object.entries(manifest.seeds).map(([name, seed]) => `${name} ${seed}`);
  const ending = status && endingOf({ manifest, status, events, checkpoints, table: series });
  const formats = { percent: formatPercent, duration: formatDuration, short: formatNumber };
  const progress = status && progressOf(status);
  const state = status && isInterrupted({ status, live }) ? 'interrupted' : (status?.state ?? 'new');
  return {
    kind: 'facts',
    facts: [
      ['State', progress ? `${state}, ${progress.unit} ${progress.done} of ${progress.of}` : state],
      ...(ending ? endingFacts(ending, formats) : []),
      ...(trainer ? ([['Trainer', [trainer.name, trainer.version].filter(Boolean).join(' ')]] as const) : []),
      ['Configuration', manifest.config_name || 'unnamed'],
      ...(model.path === '' ? [] : ([['Model', nameOf(model)]] as const)),
      ...(model.parameters === 0 ? [] : ([['Parameters', model.parameters.toLocaleString('en-US')]] as const)),
      ...(model.sha256 === '' ? [] : ([['Model SHA-256', model.sha256]] as const)),
      ...(teacher ? ([['Teacher', nameOf(teacher)]] as const) : []),
      ...(seeds.length === 0 ? [] : ([['Seeds', seeds.join(', ')]] as const)),
      ['Created', manifest.created],
      ['Run', manifest.id],
      ['Configuration SHA-256', manifest.config_hash],
      ...(manifest.parent ? [['Fork of', `${manifest.parent.run}, step ${manifest.parent.step}`] as const] : []),
    ],
  };
}

/** Returns the table of the groups' results: final and best value of each success, as mean ± 95 % interval. */
export function resultsTable(runs: readonly DrawnRun[], groups: readonly ComparedGroup[]): ReportTable {
  const keys = [...new Set(runs.flatMap(({ series }) => series.keys))];
  const of = (side: string) => keys.filter(key => key.startsWith(`${side}/`) && key.split('/')[2] === 'success');
  const shown = of('val-env').length > 0 ? of('val-env') : of('train');
  const tags = new Set(shown.map(key => key.split('/')[1]));
  const named = shown.filter(key => key.split('/').length === 3);
  const heads = named.map(key => (tags.size > 1 ? `${metricName(key)}, ${key.split('/')[1]}` : metricName(key)));
  const rows = groups.map(({ label, members }) => {
    const cells = named.flatMap(key => {
      const { final, best } = outcomes(members.map(i => runs[i].series.runCurve(key)));
      return [final, best].map(value => estimateText(value, unitOf(key)));
    });
    const seeds = members.map(i => runs[i].run.manifest.seeds.train ?? '–');
    const steps = members.map(i => runs[i].run.status?.step ?? 0);
    return [label, seeds.join(', '), [...new Set(steps)].join(', '), ...cells];
  });
  return {
    kind: 'table',
    heads: ['Configuration', 'Seeds', 'Steps', ...heads.flatMap(head => [`${head}: final`, `${head}: best`])],
    rows,
    numbers: named.flatMap((_, i) => [3 + 2 * i, 4 + 2 * i]),
  };
}

function estimateText(value: Estimate | null, unit: Unit): string {
  if (value === null) return '–';
  const mean = formatValue(value.mean, unit);
  return value.interval === null || value.n < intervalSeeds ? mean : `${mean} ± ${formatValue(value.interval, unit)}`;
}

/** Returns tables of the configuration keys in which groups differ, each of at most `mostColumns` groups. */
export function differenceBlocks(groups: readonly ComparedGroup[], keys: readonly string[]): ReportTextBlock[] {
  if (keys.length === 0) return [{ kind: 'paragraph', text: 'The runs differ only in their seeds and names.' }];
  const tables: ReportTextBlock[] = [];
  for (let from = 0; from < groups.length; from += mostColumns) {
    const part = groups.slice(from, from + mostColumns);
    const rows = keys.map((key, i) => [key, ...part.map(({ values }) => values[i])]);
    tables.push({ kind: 'table', heads: ['Key', ...part.map(({ label }) => label)], rows, numbers: [] });
  }
  return tables;
}

/** Returns the overrides of a single run; the configurations of other trainers are not stored as overrides. */
export const overrideBlocks = ({ manifest }: ReportedRun): ReportTextBlock[] =>
  manifest.trainer
    ? [{ kind: 'paragraph', text: `The configuration of ${manifest.trainer.name} is in the run folder's manifest.` }]
    : manifest.overrides.length === 0
      ? [{ kind: 'paragraph', text: `${manifest.config_name || 'The configuration'} without overrides.` }]
      : [{ kind: 'list', items: manifest.overrides }];

/** Returns the table of environments: tag, name, source and version, with the versions that edits brought. */
export function environmentTable(runs: readonly DrawnRun[]): ReportTable {
  const lines = runs.flatMap(({ run: { manifest, name, events } }) =>
    manifest.environments.map(({ tag, name: environment, source, version }) => {
      const later = ranVersions(manifest, events).filter(ran => ran.tag === tag && ran.version !== version);
      const edits = later.map(ran => `${ran.version} from step ${ran.from}`);
      const row = [tag, environment, withoutFolders(source), [version, ...edits].join('; ')];
      return { row, run: name };
    }),
  );
  const byRow = new Map<string, { row: string[]; runs: string[] }>();
  for (const { row, run } of lines) {
    const same = byRow.get(JSON.stringify(row));
    if (same) same.runs.push(run);
    else byRow.set(JSON.stringify(row), { row, runs: [run] });
  }
  const several = runs.length > 1;
  return {
    kind: 'table',
    heads: ['Tag', 'Environment', 'Source', 'Version', ...(several ? ['Runs'] : [])],
    rows: [...byRow.values()].map(({ row, runs: of }) =>
      several ? [...row, of.length === runs.length ? 'all' : of.join(', ')] : row,
    ),
    numbers: [],
  };
}

/** Returns the table of machines and program versions; equal machines share a row. */
export function machineTable(runs: readonly DrawnRun[]): ReportTable {
  const rows = new Map<string, { facts: [string, string][]; runs: string[] }>();
  for (const { run } of runs) {
    const { hardware, versions } = run.manifest;
    const facts = [...Object.entries(hardware), ...Object.entries(versions)].map(([key, value]): [string, string] => [
      key,
      String(value),
    ]);
    const id = JSON.stringify(facts);
    const same = rows.get(id);
    if (same) same.runs.push(run.name);
    else rows.set(id, { facts, runs: [run.name] });
  }
  const several = rows.size > 1;
  return {
    kind: 'table',
    heads: [...(several ? ['Runs'] : []), 'What', 'Value'],
    rows: [...rows.values()].flatMap(({ facts, runs: of }) =>
      facts.map(([key, value]) => [...(several ? [of.join(', ')] : []), key, value]),
    ),
    numbers: [],
  };
}

const markNames: Record<MarkKind, string> = {
  alarm: 'Alarm',
  error: 'Error',
  refused: 'Refused edit',
  version: 'Environment edited',
  resume: 'Resumed',
  setting: 'Setting',
  checkpoint: 'Checkpoint',
};

/** Returns the table of a run's events that charts mark, without checkpoints; null without such events. */
export function eventTable({ events }: ReportedRun): ReportTable | null {
  const marked = placeEvents(events).flatMap(({ event, step, mark }) =>
    mark === undefined || mark === 'checkpoint' ? [] : [[`${step}`, markNames[mark], event.message]],
  );
  const rest = marked.length - mostEvents;
  const rows = rest > 0 ? [...marked.slice(0, mostEvents), ['', '', `${rest} later events left out`]] : marked;
  return rows.length === 0 ? null : { kind: 'table', heads: ['Step', 'Event', 'Message'], rows, numbers: [] };
}
