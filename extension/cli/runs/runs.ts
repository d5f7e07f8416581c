// `ragen runs`: lists the runs of a folder with their state and the user's labels.
import { basename } from 'node:path';
import type { Command } from 'commander';
import type { RunStatus } from '../../run-data/run-status-file';
import { isInterrupted, isUnended } from '../../run-data/run-progress';
import { UserError } from '../../common/user-error';
import { readLease, type LeaseState } from '../../trainer/store/held-lease';
import { printable } from '../../common/printable';
import { RunFolder } from '../../trainer/store/run-folder';
import { answer } from '../output/answer';
import { withCommon } from '../options/run-options';
import type { CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';

interface RunsFlags extends CommonFlags {
  archived?: boolean;
  tag?: string;
}

export function addRuns(program: Command): void {
  withCommon(program.command('runs').description('list the runs of this folder'))
    .option('--archived', 'list archived runs as well')
    .option('--tag <tag>', 'list only runs with this tag')
    .action((flags: RunsFlags) =>
      answer(flags, async () => {
        const { runs, damaged } = RunFolder.survey(workspaceOf(flags.workspace));
        const rows = [...runs.map(rowOf), ...damaged.map(damagedRow)].filter(
          ({ archived, tags }) => (flags.archived || !archived) && (!flags.tag || tags.includes(flags.tag)),
        );
        const none = 'No runs here yet; to start one, run: ragen train --config-name quickstart';
        return { document: rows, plainText: rows.map(formatRow).join('\n') || none };
      }),
    );
}

export interface Row {
  run: string;
  name: string;
  /** The run's state, or `damaged` if its manifest or status cannot be used; `error` then contains the reason. */
  state: string;
  step: number;
  total_steps: number | null;
  episodes?: { done: number; of: number };
  success: number | null;
  live: boolean;
  /** Seconds for which the living trainer has not responded; absent while it responds. */
  silent_s?: number;
  tags: string[];
  archived: boolean;
  folder: string;
  error?: string;
}

/** Returns the row of a folder whose manifest cannot be used. */
const damagedRow = ({ folder, reason }: { folder: string; reason: string }): Row => ({
  run: basename(folder),
  name: basename(folder),
  state: 'damaged',
  step: 0,
  total_steps: null,
  success: null,
  live: false,
  tags: [],
  archived: false,
  folder,
  error: reason,
});

/** Returns the facts of a run, with the reason if its status cannot be used. */
export function rowOf(folder: RunFolder): Row {
  let status: RunStatus | null;
  let lease: LeaseState | null;
  try {
    status = folder.readStatus();
    lease = readLease(folder.path);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { ...damagedRow({ folder: folder.path, reason: error.message }), name: folder.manifest.name };
  }
  const live = lease !== null && lease.life !== 'gone';
  const silent = lease?.life === 'silent' && status !== null && isUnended(status.state);
  const interrupted = status !== null && isInterrupted({ status, live });
  const { name = folder.manifest.name, tags = folder.manifest.tags ?? [], archived = false } = folder.readLabels();
  return {
    run: folder.id,
    name,
    state: interrupted ? 'interrupted' : (status?.state ?? 'new'),
    step: status?.step ?? 0,
    total_steps: status?.total_steps ?? null,
    ...(status?.episodes && { episodes: status.episodes }),
    success: status?.success ?? null,
    live,
    ...(silent && { silent_s: Math.floor(lease!.silentMs / 1000) }),
    tags,
    archived,
    folder: folder.path,
    ...(status?.error !== undefined && { error: status.error }),
  };
}

function formatRow(row: Row): string {
  const { run, name, state, silent_s, step, total_steps, episodes, success, tags, archived, error } = row;
  if (state === 'damaged') return printable(`${run}  ${state}: ${error}`);
  const { done, of } = episodes ?? { done: step, of: total_steps || '?' };
  const share = success === null ? '' : `${(success * 100).toFixed(1)} %`;
  const silent = silent_s === undefined ? [] : [`(not responding for ${silent_s} s)`];
  const labels = [name, ...silent, ...tags.map(tag => `#${tag}`), ...(archived ? ['(archived)'] : [])].join(' ');
  return `${run}  ${state.padEnd(11)} ${String(done).padStart(6)}/${of}  ${share.padStart(7)}  ${printable(labels)}`;
}
