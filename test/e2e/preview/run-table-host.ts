// In-memory host for the run table: generated runs of a sweep over learning rates and seeds, with tags and notes.
import {
  runTableCells,
  runTableColour,
  runTableDeleteView,
  runTableExport,
  runTableNotes,
  runTableReady,
  runTableSaveView,
  runTableTags,
  runTableWriteNotes,
  type RunCells,
  type RunTableLayout,
  type RunTableSnapshot,
  type RunTableView,
} from '../../../extension/protocol/run-table-page';
import type { RunSummary } from '../../../extension/protocol/page-state';
import { parseColumn, type Cell } from '../../../extension/run-data/table-columns';
import { parseMetricMeanings } from '../../../extension/run-data/metric-meanings';
import { runAt } from './data';
import type { MemoryHost } from './memory-host';

const metricKeys = [
  'train/CoordFrozenLake/success',
  'val-env/CoordFrozenLake/success',
  'charts/avg_episode_return',
  'actor/entropy',
  'perf/throughput',
];
const rates = [0.0001, 0.0003, 0.001, 0.003];

/** Generated runs, newest first. */
export function tableRuns(count: number): RunSummary[] {
  return Array.from({ length: count }, (_, i) => {
    const live = i === 0;
    const step = live ? 57 : 200;
    const run = runAt(step, 200, live ? {} : { state: i % 9 === 4 ? 'failed' : 'finished', phase: 'idle' });
    run.status.success = ((i * 37) % 100) / 100;
    run.status.reward = ((i * 17) % 50) / 10 - 2;
    return {
      ...run,
      live,
      id: `20260203-${String(count - i).padStart(4, '0')}-lake`,
      name: `lake lr ${rates[i % 4]} seed ${(i >> 2) + 1}`,
      folder: `/runs/${i}`,
      config_name: i % 3 === 0 ? 'quickstart' : 'frozen-lake',
      created: new Date(Date.UTC(2026, 1, 3) - i * 3_600_000).toISOString(),
      ...(i % 5 === 1 && { tags: ['paper', `arm-${i % 2}`] }),
      ...(i % 4 === 2 && { notes: 'Entropy falls after step 60; try a higher temperature' }),
      ...(i % 11 === 7 && { archived: true }),
    };
  });
}

/** Value of a column that the host computes; runs with `i % 9 === 4` failed before the first validation. */
function valueOf(i: number, id: string): Cell {
  const column = parseColumn(id);
  if (column?.kind === 'config') {
    if (column.key === 'actor_rollout_ref.actor.optim.lr') return rates[i % 4];
    if (column.key === 'seed.train') return 10_000 * ((i >> 2) + 1);
    return column.key === 'algorithm.adv_estimator' ? (i % 3 === 0 ? 'grpo' : 'gae') : null;
  }
  if (column?.kind !== 'metric' || !metricKeys.includes(column.key)) return null;
  if (column.key.startsWith('val-env') && i % 9 === 4) return null;
  const share = ((i * 37 + (column.at === 'best' ? 11 : 0)) % 100) / 100;
  return column.key === 'perf/throughput' ? 2000 + share * 900 : share;
}

/** `metrics` is the text of docs/METRICS.md. */
export function runTableHost(count: number, metrics: string): MemoryHost {
  const runs = tableRuns(count);
  let views: RunTableView[] = [];
  const at = (folder: string) => Number(folder.slice('/runs/'.length));
  const answers: Record<string, (params: never) => unknown> = {
    [runTableReady.method]: (): RunTableSnapshot => ({
      runs,
      configKeys: ['algorithm.adv_estimator', 'actor_rollout_ref.actor.optim.lr', 'seed.train', 'trainer.test_freq'],
      variedKeys: ['algorithm.adv_estimator', 'actor_rollout_ref.actor.optim.lr', 'seed.train'],
      meanings: parseMetricMeanings(metrics),
      views,
    }),
    [runTableCells.method]: ({ folders, columns }: { folders: string[]; columns: string[] }) => ({
      cells: folders.map((folder): RunCells => ({ folder, values: columns.map(id => valueOf(at(folder), id)) })),
      metricKeys,
    }),
    [runTableTags.method]: () => null,
    [runTableColour.method]: () => null,
    [runTableNotes.method]: () => '# lake\n\nEntropy falls after step 60; try a higher temperature\n',
    [runTableWriteNotes.method]: () => null,
    [runTableSaveView.method]: ({ layout, name }: { layout: RunTableLayout; name: string | null }) => {
      const saved = name ?? 'my view';
      views = [...views.filter(view => view.name !== saved), { ...layout, name: saved }];
      return { views, name: saved };
    },
    [runTableDeleteView.method]: ({ name }: { name: string }) => (views = views.filter(view => view.name !== name)),
    [runTableExport.method]: () => true,
  };
  return {
    answer(method, params) {
      const answer = answers[method];
      if (!answer) throw new Error(`preview: no answer to ${method}`);
      return answer(params as never);
    },
  };
}
