// Options that place a run on a Ray cluster, and the choice of the cluster whose jobs a command may control. A job
// record of a run folder is untrusted: its address is contacted only if it equals --on or RAY_ADDRESS.
import { dirname, isAbsolute, join } from 'node:path';
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { installation } from '../../node/installation';
import { RayJobs } from '../../ray/ray-jobs';
import { rayAddress, rayServer } from '../../ray/ray-server';
import type { JobRecord } from '../../run-data/job-record';

export interface OnFlags {
  /** Address of a Ray dashboard, or `local`. */
  on?: string;
}

export interface PlaceFlags extends OnFlags {
  remoteCli?: string;
  passEnv?: string[];
}

/** Where a run's job is submitted, and how the job starts the CLI. */
export interface JobPlace {
  jobs: RayJobs;
  /** Absolute path of the CLI on the cluster's nodes. */
  cli: string;
  /** Environment variables that the user passes to the job. */
  env: Record<string, string>;
}

/** Value of --on that selects this machine. */
const here = 'local';

/** Adds --on. */
export const withOn = (command: Command, description: string): Command => command.option('--on <url>', description);

/** Adds --on, --remote-cli and --pass-env. */
export const withPlace = (command: Command): Command =>
  withOn(command, 'run as a job of the Ray cluster with this dashboard, such as http://127.0.0.1:8265')
    .option('--remote-cli <path>', 'path of dist/cli.cjs on the cluster’s nodes (default: the path of this CLI)')
    .option(
      '--pass-env <name>',
      'pass this environment variable to the job (repeatable); Ray stores and shows its value',
      (name: string, names: string[] = []) => [...names, name],
    );

/**
 * Returns the cluster that the options select; null if they select this machine. First sends the cluster a request, to
 * check that it responds. Throws a UserError.
 */
export async function placeOf(flags: PlaceFlags): Promise<JobPlace | null> {
  if (flags.on === undefined || flags.on === here) {
    const unused = flags.remoteCli !== undefined ? '--remote-cli' : flags.passEnv ? '--pass-env' : undefined;
    if (unused !== undefined) throw new UserError(`${unused} needs a Ray cluster: give its address with --on`);
    return null;
  }
  const cli = flags.remoteCli ?? join(dirname(installation.trainer), 'cli.cjs');
  if (!isAbsolute(cli))
    throw new UserError(`--remote-cli is ${JSON.stringify(cli)}: give the absolute path of dist/cli.cjs on the nodes`);
  const env = Object.fromEntries((flags.passEnv ?? []).map(name => [name, valueOf(name)]));
  const jobs = new RayJobs(rayServer(flags.on));
  await jobs.version();
  return { jobs, cli, env };
}

function valueOf(name: string): string {
  const value = process.env[name];
  if (value === undefined)
    throw new UserError(
      `--pass-env ${name}: the environment variable is not set: set the variable, or leave the option out`,
    );
  return value;
}

/** Returns the cluster whose jobs a command lists or controls: --on, else RAY_ADDRESS. Throws a UserError. */
export function clusterOf({ on }: OnFlags, env: NodeJS.ProcessEnv = process.env): RayJobs {
  const address = on ?? httpAddress(env);
  if (address === undefined)
    throw new UserError('no Ray cluster is given: give the address of its dashboard with --on, or set RAY_ADDRESS');
  return new RayJobs(rayServer(address));
}

/**
 * Returns the Ray cluster that a run's job record names. The record is trusted only if the user has named the same
 * address.
 * @throws UserError unless --on or, if --on is not given, RAY_ADDRESS names the address in the record
 */
export function clusterOfJob(run: string, { id, address }: JobRecord, { on }: OnFlags): RayJobs {
  const given = on ?? httpAddress(process.env);
  if (given !== undefined && given !== here && rayAddress(given) === address) return new RayJobs(rayServer(address));
  throw new UserError(
    `run ${run} belongs to the Ray job ${id} of ${address}, ${given === undefined ? 'but no address was given' : `but the given address is ${given}`}: repeat the command with --on ${address} if you trust this address`,
  );
}

/**
 * Returns RAY_ADDRESS if it is the address of a dashboard. Otherwise returns undefined, because RAY_ADDRESS may also
 * hold a cluster's internal address.
 */
const httpAddress = ({ RAY_ADDRESS }: NodeJS.ProcessEnv): string | undefined =>
  RAY_ADDRESS !== undefined && /^https?:/.test(RAY_ADDRESS) ? RAY_ADDRESS : undefined;

/**
 * Returns the place where a run is resumed: the one that --on names, or the cluster of its earlier job if RAY_ADDRESS
 * names this cluster.
 * @throws UserError if the run had a job, and the user gives neither the address of the job's cluster nor `--on local`
 */
export async function placeOfResume(
  run: string,
  record: JobRecord | null,
  flags: PlaceFlags,
): Promise<JobPlace | null> {
  if (flags.on !== undefined || record === null) return placeOf(flags);
  const named = httpAddress(process.env);
  if (named !== undefined && rayAddress(named) === record.address) return placeOf({ ...flags, on: named });
  throw new UserError(
    `run ${run} was the Ray job ${record.id} of ${record.address}: resume it there with --on ${record.address}, or on this machine with --on ${here}`,
  );
}
