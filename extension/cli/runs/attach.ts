// `ragen attach`: opens a run of another trainer. Its files are followed, and copies in this product's formats are
// written to a run folder of the workspace, so that all pages and commands show the run.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import { counted } from '../../common/numbers';
import { printable } from '../../common/printable';
import { UserError } from '../../common/user-error';
import { yamlDocument } from '../../common/yaml-text';
import { abortable } from '../../node/abortable';
import { readBoundedSync } from '../../node/bounded-file';
import { replaceFile, storeError } from '../../node/files';
import type { ForeignRun } from '../../foreign-runs/adapter';
import { attachedFrom, AttachedRun } from '../../foreign-runs/attached-run';
import { followRun, isFollowed, leaseOf, type FollowLease } from '../../foreign-runs/follow-run';
import { proposedMapping } from '../../foreign-runs/mapping-guess';
import { stem } from '../../foreign-runs/peek';
import { adapters, recognise, type Recognised } from '../../foreign-runs/recognition';
import { SourceFolder } from '../../foreign-runs/source-folder';
import {
  fieldMeanings,
  mappingComments,
  mappingSchema,
  mappingYaml,
  UnmappedFields,
  type Mapping,
} from '../../run-data/mapping-proposal';
import { RunFolder } from '../../trainer/store/run-folder';
import { json, readJson } from '../../trainer/store/run-documents';
import { isUnended } from '../../run-data/run-progress';
import { hasEntrySync } from '../../node/read-run-file';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer, type Answer } from '../output/answer';
import { startFollower } from '../run-lifecycle/follower-process';

interface AttachFlags extends CommonFlags {
  trainer?: string;
  mapping?: string;
  propose?: string;
  name?: string;
  space: string;
  run?: string;
  once?: boolean;
  detach?: boolean;
}

const mappingFile = 'mapping.json';

export function addAttach(program: Command): void {
  withCommon(program.command('attach').description('open a run of another trainer, and follow its files'))
    .argument('[path]', 'folder or file into which the trainer writes')
    .option(
      '--trainer <name>',
      `trainer that wrote the files: ${adapters.map(({ id }) => id).join(', ')} (default: recognised by the files)`,
    )
    .option('--mapping <file>', 'YAML or JSON file with the names of fields and metrics (see below)')
    .option(
      '--propose <file>',
      'write a proposed mapping to this file, to check and to give with --mapping; open nothing',
    )
    .option('--name <name>', 'name of the run (default: the trainer’s)')
    .option('--space <gigabytes>', 'maximum size of the converted episodes; the newest are kept', '4')
    .option('--run <id>', 'run that was attached before (instead of a path)')
    .option('--once', 'read what is there and exit, instead of following the files')
    .option('--detach', 'follow the files in a process that outlives this terminal')
    .addHelpText(
      'after',
      `
Nothing is written to the trainer's folder. ragen stop <run> ends a process that follows a run. Attaching the same path again continues
with the same run. A mapping has two parts, both optional:
  fields:   {reward: my_score, group: problem_id}    fields: ${fieldMeanings.join(', ')}
  metrics:  {"train/my_reward": critic/score/mean}   names of metrics in the files, and RAGEN's names for them`,
    )
    .action((path: string | undefined, flags: AttachFlags) => answer(flags, () => attach(path, flags)));
}

async function attach(path: string | undefined, flags: AttachFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  if ((path === undefined) === (flags.run === undefined))
    throw new UserError('give either the path of a folder or file, or --run with a run that was attached before');
  const earlier = flags.run === undefined ? undefined : attachedRun(workspace, flags.run);
  if (!earlier || flags.detach || isFollowed(earlier)) return open({ workspace, path, earlier, flags });
  return interruptible(async signal => {
    // A detached follower acquires the lease before it reads the folder, because its parent only waits for the lease.
    const lease = await leaseOf(earlier);
    try {
      return await open({ workspace, path, earlier, flags, lease, signal });
    } finally {
      const status = earlier.readStatus();
      if (!lease.lost.aborted && status && isUnended(status.state))
        await earlier.writeStatus({ ...status, state: 'stopped' });
      lease.release();
    }
  });
}

/** Does work with a signal that is aborted when the process is told to end. */
async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const end = (): void => stop.abort(new UserError('the command was interrupted: repeat it to continue'));
  const signals = ['SIGTERM', 'SIGINT'] as const;
  for (const each of signals) process.on(each, end);
  try {
    return await work(stop.signal);
  } finally {
    for (const each of signals) process.off(each, end);
  }
}

interface AttachRequest {
  workspace: string;
  path: string | undefined;
  /** The run of `--run`. */
  earlier: RunFolder | undefined;
  flags: AttachFlags;
  /** The lease of the run, if it is held already. */
  lease?: FollowLease;
  /** Ends the command. Without it, the process is ended by its signals until it writes something. */
  signal?: AbortSignal;
}

async function open({ signal, ...request }: AttachRequest): Promise<Answer> {
  const { workspace, path, earlier, flags } = request;
  spaceOf(flags.space); // refused before anything is read
  const source = await SourceFolder.open(path ?? earlier!.manifest.trainer!.source);
  if (flags.propose !== undefined) return propose(source, flags.propose);
  const known = earlier ?? (path === undefined ? undefined : attachedFrom(workspace, source.path)[0]);
  const mapping = mappingOf(flags, known);
  const trainer = flags.trainer ?? known?.manifest.trainer?.adapter;
  const recognised = await abortable(signal, recognise(source, trainer, mapping)).catch(proposalOf);
  if ('proposal' in recognised) return proposed(recognised, workspace);
  const found = { ...request, ...recognised, source, known, mapping };
  return signal ? show(found, signal) : interruptible(own => show(found, own));
}

interface FoundRun extends AttachRequest, Recognised {
  source: SourceFolder;
  /** The run folder that shows the source already. */
  known: RunFolder | undefined;
  mapping: Mapping;
}

/** Creates the run folder if there is none, and follows the files in this process or in a detached one. */
async function show(
  { workspace, flags, lease, adapter, run, source, known, mapping }: FoundRun,
  signal: AbortSignal,
): Promise<Answer> {
  const { name } = flags;
  const folder =
    known ??
    (await AttachedRun.create(workspace, source, run, { adapter: adapter.id, ...(name !== undefined && { name }) }));
  if (flags.mapping !== undefined) await replaceFile(folder.file(mappingFile), json(mapping));
  const report = (text: string): void => void process.stderr.write(`${printable(text)}\n`);
  for (const line of describe(run, folder)) if (flags.run === undefined) report(line);
  const document = {
    run: folder.id,
    folder: folder.path,
    trainer: run.trainer.name,
    found: run.found,
    missing: run.missing,
  };
  if (!lease && isFollowed(folder))
    return { document, plainText: `Run ${folder.id} is already followed by another process.` };
  if (flags.detach) {
    await startFollower(folder, workspace, ['--space', flags.space], signal);
    if (!signal.aborted)
      return { document, plainText: `Run ${folder.id} is followed; stop with ragen stop ${folder.id}.` };
    if (!known) rmSync(folder.path, { recursive: true, force: true });
    throw signal.reason;
  }
  let attached: AttachedRun | undefined;
  const reported = new Set<string>();
  const reportLeftOut = ({ leftOut }: AttachedRun): void => {
    for (const sentence of leftOut) {
      const kind = sentence.replace(/\d+/g, '0'); // numbers that grow are reported once
      if (!reported.has(kind) && flags.run === undefined) report(`  not shown  ${sentence}`);
      reported.add(kind);
    }
  };
  const isComplete = await followRun(folder, source, run, {
    ...{ episodeBytes: spaceOf(flags.space), once: flags.once === true, signal, lease },
    onChange(now, isFirst) {
      attached = now;
      if (!isFirst && flags.run === undefined) report(progressOf(now));
      if (!isFirst) reportLeftOut(now);
    },
  });
  if (attached) reportLeftOut(attached);
  const left = 'not everything was read: repeat the command to continue';
  return {
    document: { ...document, left_out: attached?.leftOut ?? [] },
    plainText: `Run ${folder.id}: ${attached ? progressOf(attached) : 'nothing read'}${isComplete ? '' : `; ${left}`}`,
    ...(flags.once && !isComplete && { failed: left }),
  };
}

function proposalOf(error: unknown): UnmappedFields {
  if (error instanceof UnmappedFields) return error;
  throw error;
}

/** Prints a proposed mapping, and the command that writes it to a file of the workspace. */
function proposed({ message, proposal }: UnmappedFields, workspace: string): Answer {
  const file = join(workspace, '.ragen', 'mappings', `${stem(proposal.file)}.yaml`);
  return {
    document: { error: { message, proposal } },
    plainText: `${mappingYaml(proposal.mapping, mappingComments(proposal))}# To write this to a file, repeat the command with --propose ${file}`,
    failed: message,
  };
}

async function propose(source: SourceFolder, file: string): Promise<Answer> {
  const proposal = await proposedMapping(source);
  if (!proposal)
    throw new UserError(`${source.path} contains no JSON lines with numbers and texts or steps: give another path`);
  if (existsSync(file)) throw new UserError(`${file} already exists: give another file with --propose`);
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, mappingYaml(proposal.mapping, mappingComments(proposal)), { flag: 'wx' });
  } catch (error) {
    throw storeError('write', file, error);
  }
  const command = `ragen attach ${source.path} --mapping ${file}`;
  return { document: { file, proposal }, plainText: `Proposed mapping → ${file}; check it, then: ${command}` };
}

/** Returns a run that was attached by this user: its manifest names the folder to read, so it must be signed. */
function attachedRun(workspace: string, id: string): RunFolder {
  const folder = RunFolder.find(workspace, id);
  const { trainer } = folder.manifest;
  if (!trainer)
    throw new UserError(`run ${id} was not attached, so there are no files to follow: give the path of a folder`);
  if (!folder.manifestCode.signed)
    throw new UserError(`run ${id} was attached by another user: give the path of its files, ragen attach <path>`);
  return folder;
}

function describe({ trainer, found, missing }: ForeignRun, folder: RunFolder): string[] {
  return [
    `${trainer.name} run ${folder.manifest.name}, shown as ${folder.id}`,
    ...found.map(text => `  found    ${text}`),
    ...missing.map(text => `  missing  ${text}`),
  ];
}

function progressOf({ table, episodes }: AttachedRun): string {
  const rows = `${counted(table.steps.length, 'step')} of metrics`;
  return `${rows}${table.steps.length > 0 ? ` (newest: ${table.steps.at(-1)})` : ''}, ${counted(episodes.steps, 'step')} of episodes`;
}

function spaceOf(text: string): number {
  const gigabytes = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(gigabytes >= 0 && gigabytes <= 100_000))
    throw new UserError(`--space is ${text}: give a number of gigabytes from 0 to 100000`);
  return gigabytes * 1e9;
}

function mappingOf({ mapping: file }: AttachFlags, known: RunFolder | undefined): Mapping {
  if (file === undefined)
    return known && hasEntrySync(known.path, mappingFile) ? readJson(known.path, mappingFile, mappingSchema) : {};
  let text: string;
  try {
    text = readBoundedSync(file, { most: 2 ** 20, within: null }).toString('utf8');
  } catch (error) {
    throw storeError('read', file, error);
  }
  const document = yamlDocument(text, {});
  const [mistake] = document.errors;
  if (mistake) throw new UserError(`${file}: ${mistake.message.split('\n', 1)[0]}`);
  const parsed = mappingSchema.safeParse(document.toJS({ maxAliasCount: 0 }) ?? {});
  if (parsed.success) return parsed.data;
  const [{ path, message }] = parsed.error.issues;
  throw new UserError(`${file}: ${path.join('.') || 'the mapping'}: ${message}; use fields and metrics`);
}
