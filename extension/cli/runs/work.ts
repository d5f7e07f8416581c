// `ragen work`: runs the trainer of an existing run as a child of this process, and follows it. Ray jobs execute this
// command: the exit code tells Ray whether the run failed, the printed table is the job's log, and after SIGTERM, the
// run saves a checkpoint of its last finished step and stops.
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { requireTrusted } from '../../trainer/run/trusted-run';
import { RunFolder } from '../../trainer/store/run-folder';
import { isQueued } from '../jobs/settled-run';
import { withCommon, withTrust, type CommonFlags, type TrustFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer, type Answer } from '../output/answer';
import { followTrainer } from '../run-lifecycle/run-and-follow';
import { startTrainer } from '../run-lifecycle/trainer-process';

interface WorkFlags extends CommonFlags, TrustFlags {
  job: string;
  resume?: boolean;
  checkpoint?: string;
  acceptDamagedLogs?: boolean;
  set?: string[];
}

const signals = ['SIGTERM', 'SIGINT'] as const;

export function addWork(program: Command): void {
  withTrust(
    withCommon(program.command('work').description('run the trainer of a queued run; Ray jobs run this command')),
  )
    .argument('<folder>', 'run folder')
    .requiredOption('--job <id>', 'id of the job')
    .option('--resume', 'resume from the newest checkpoint')
    .option('--checkpoint <name>', 'resume from this checkpoint')
    .option('--accept-damaged-logs', 'resume although logs differ from their checksums')
    .option('--set <setting>', 'setting to change, as key=value (repeatable)', (text: string, all: string[] = []) => [
      ...all,
      text,
    ])
    .action((path: string, flags: WorkFlags) => answer(flags, () => work(path, flags)));
}

async function work(path: string, flags: WorkFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const folder = RunFolder.open(resolve(path));
  requireTrusted(folder, flags);
  const record = folder.readJob();
  if (record?.id !== flags.job || !isQueued(folder)) {
    const plainText = `Run ${folder.id} no longer waits for this job: the job was cancelled, or the run has another job.`;
    return { document: { run: folder.id, job: flags.job, cancelled: true }, plainText };
  }
  await folder.writeJob({ ...record, host: hostname() });
  const halt = new AbortController();
  const stop = (): void => halt.abort();
  for (const signal of signals) process.on(signal, stop);
  try {
    const trainer = await startTrainer(folder, workspace, trainerArgs(flags), flags.job);
    return await followTrainer(folder, workspace, trainer, flags, halt.signal);
  } finally {
    for (const signal of signals) process.off(signal, stop);
  }
}

/** Options of the trainer (trainer/main.ts). */
const trainerArgs = ({ resume, checkpoint, acceptDamagedLogs, set = [] }: WorkFlags): string[] => [
  ...(resume ? ['--resume'] : []),
  ...(checkpoint === undefined ? [] : ['--checkpoint', checkpoint]),
  ...(acceptDamagedLogs ? ['--accept-damaged-logs'] : []),
  ...set.flatMap(setting => ['--set', setting]),
];
