// `ragen attach`: opens a run of another trainer. Its files are followed, and copies in this product's formats are
// written to a run folder of the workspace, so that all pages and commands show the run.
import type { Command } from 'commander';
import { z } from 'zod';
import { counted } from '../../common/numbers';
import { printable } from '../../common/printable';
import { UserError } from '../../common/user-error';
import { yamlDocument } from '../../common/yaml-text';
import { readBoundedSync } from '../../node/bounded-file';
import { replaceFile, storeError } from '../../node/files';
import type { ForeignRun, Mapping } from '../../foreign-runs/adapter';
import { attachedFrom, AttachedRun } from '../../foreign-runs/attached-run';
import { fieldNames } from '../../foreign-runs/adapters/json-lines';
import { followRun, isFollowed } from '../../foreign-runs/follow-run';
import { adapters, recognise } from '../../foreign-runs/recognition';
import { SourceFolder } from '../../foreign-runs/source-folder';
import { RunFolder } from '../../trainer/store/run-folder';
import { json, readJson } from '../../trainer/store/run-documents';
import { hasEntrySync } from '../../node/read-run-file';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer, type Answer } from '../output/answer';
import { startFollower } from '../run-lifecycle/follower-process';

interface AttachFlags extends CommonFlags {
  trainer?: string;
  mapping?: string;
  name?: string;
  space: string;
  run?: string;
  once?: boolean;
  detach?: boolean;
}

/** `mapping.json` of a run folder, and the file of `--mapping`. */
const mappingSchema = z.strictObject({
  fields: z.record(z.string(), z.string()).optional(),
  metrics: z.record(z.string(), z.string()).optional(),
});
const mappingFile = 'mapping.json';

export function addAttach(program: Command): void {
  withCommon(program.command('attach').description('open a run of another trainer, and follow its files'))
    .argument('[path]', 'folder or file into which the trainer writes')
    .option(
      '--trainer <name>',
      `trainer that wrote the files: ${adapters.map(({ id }) => id).join(', ')} (default: recognised by the files)`,
    )
    .option('--mapping <file>', 'YAML or JSON file with the names of fields and metrics (see below)')
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
  fields:   {reward: my_score, group: problem_id}    fields: ${Object.keys(fieldNames).join(', ')}
  metrics:  {"train/my_reward": critic/score/mean}   names of metrics in the files, and RAGEN's names for them`,
    )
    .action((path: string | undefined, flags: AttachFlags) => answer(flags, () => attach(path, flags)));
}

async function attach(path: string | undefined, flags: AttachFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const episodeBytes = spaceOf(flags.space);
  if ((path === undefined) === (flags.run === undefined))
    throw new UserError('give either the path of a folder or file, or --run with a run that was attached before');
  const earlier = flags.run === undefined ? undefined : attachedRun(workspace, flags.run);
  const source = await SourceFolder.open(path ?? earlier!.manifest.trainer!.source);
  const known = earlier ?? (path === undefined ? undefined : attachedFrom(workspace, source.path)[0]);
  const mapping = mappingOf(flags, known);
  const { adapter, run } = await recognise(source, flags.trainer ?? known?.manifest.trainer?.adapter, mapping);
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
  if (isFollowed(folder)) return { document, plainText: `Run ${folder.id} is already followed by another process.` };
  if (flags.detach) {
    await startFollower(folder, workspace, ['--space', flags.space]);
    return { document, plainText: `Run ${folder.id} is followed; stop with ragen stop ${folder.id}.` };
  }
  const stop = new AbortController();
  const end = (): void => stop.abort();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, end);
  let attached: AttachedRun | undefined;
  await followRun(folder, source, run, {
    ...{ episodeBytes, once: flags.once === true, signal: stop.signal },
    onChange(now, isFirst) {
      attached = now;
      if (!isFirst && flags.run === undefined) report(progressOf(now));
    },
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, end);
  return { document, plainText: `Run ${folder.id}: ${attached ? progressOf(attached) : 'nothing read'}` };
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
