// `ragen runs`: the runs of a folder, as they stand and by what their user says of them.
import type { Command } from 'commander';
import { readLease } from '../store/lease';
import { RunFolder } from '../store/run-folder';
import { answer } from './answer';
import { unended, withCommon } from './serve';
import type { CommonFlags } from './serve';
import { workspaceOf } from './start';

interface RunsFlags extends CommonFlags {
  archived?: boolean;
  tag?: string;
}

export function addRuns(program: Command): void {
  withCommon(program.command('runs').description('list the runs of this folder'))
    .option('--archived', 'archived runs too')
    .option('--tag <tag>', 'only runs with this tag')
    .action((flags: RunsFlags) =>
      answer(flags, async () => {
        const rows = RunFolder.list(workspaceOf(flags.workspace))
          .map(rowOf)
          .filter(({ archived, tags }) => (flags.archived || !archived) && (!flags.tag || tags.includes(flags.tag)));
        const none = 'No runs here yet: ragen train --config-name quickstart';
        return { document: rows, words: rows.map(wordsOf).join('\n') || none };
      }),
    );
}

type Row = ReturnType<typeof rowOf>;

function rowOf(folder: RunFolder) {
  const status = folder.readStatus();
  const live = readLease(folder.path)?.live ?? false;
  const interrupted = !live && status !== null && unended.includes(status.state);
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
    tags,
    archived,
    folder: folder.path,
    ...(status?.error !== undefined && { error: status.error }),
  };
}

function wordsOf({ run, name, state, step, total_steps, episodes, success, tags, archived }: Row): string {
  const { done, of } = episodes ?? { done: step, of: total_steps ?? '?' };
  const share = success === null ? '' : `${(success * 100).toFixed(1)} %`;
  const labels = [name, ...tags.map(tag => `#${tag}`), ...(archived ? ['(archived)'] : [])].join(' ');
  return `${run}  ${state.padEnd(11)} ${String(done).padStart(6)}/${of}  ${share.padStart(7)}  ${labels}`;
}
