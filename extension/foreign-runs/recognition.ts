// Finds out which trainer has written a folder. The adapters are asked in an order in which a more specific one
// precedes: prime-rl stores verifiers' traces, and RAGEN and VAGEN write what verl writes.
import { UserError } from '../common/user-error';
import { UnmappedFields, type Mapping } from '../run-data/mapping-proposal';
import type { Adapter, ForeignRun } from './adapter';
import { jsonLines } from './adapters/json-lines';
import { primeRl } from './adapters/prime-rl';
import { ragen } from './adapters/ragen';
import { skyrl } from './adapters/skyrl';
import { tensorboard } from './adapters/tensorboard';
import { tinkerCookbook } from './adapters/tinker-cookbook';
import { trl } from './adapters/trl';
import { vagen } from './adapters/vagen';
import { verifiers } from './adapters/verifiers';
import { verl } from './adapters/verl';
import { growingRun } from './growing-run';
import { proposedMapping } from './mapping-guess';
import { firstBytes, mostPeekBytes } from './peek';
import type { SourceFolder } from './source-folder';

/** All adapters, in the order in which they are asked. */
export const adapters: readonly Adapter[] = [
  primeRl,
  verifiers,
  tinkerCookbook,
  trl,
  skyrl,
  vagen,
  ragen,
  verl,
  tensorboard,
  jsonLines,
];

/** A run, and the adapter that has found it. */
export interface Recognised {
  adapter: Adapter;
  run: ForeignRun;
}

/**
 * Returns the adapter that recognises the folder, and what it has found. `id` names the adapter to ask; by default, all
 * are asked. Throws UnmappedFields if the folder contains JSON lines whose fields have unusual names, and another
 * UserError if no adapter recognises it.
 */
export async function recognise(source: SourceFolder, id?: string, mapping: Mapping = {}): Promise<Recognised> {
  const names = adapters.map(adapter => adapter.id).join(', ');
  const asked = id === undefined ? adapters : adapters.filter(adapter => adapter.id === id);
  if (asked.length === 0) throw new UserError(`there is no trainer ${id}: use one of ${names}`);
  for (const adapter of asked) {
    const run = await adapter.find(source, mapping);
    if (run) return { adapter, run: growingRun(source, adapter, mapping, run) };
  }
  const proposal = id === undefined || id === jsonLines.id ? await proposedMapping(source) : undefined;
  if (proposal && mapping.fields !== undefined)
    throw new UserError(
      `${source.path}: the fields of the mapping (${Object.values(mapping.fields).join(', ')}) do not make a rollout or a row of metrics of the first line of ${proposal.file}, whose fields are ${proposal.fields.map(({ path }) => path).join(', ')}: correct the mapping`,
    );
  if (proposal)
    throw new UnmappedFields(
      `${source.path}: the fields of ${proposal.file} have unusual names: check the proposed mapping, and give it with --mapping`,
      proposal,
    );
  const long = await overlongFile(source);
  if (long !== undefined)
    throw new UserError(
      `${source.path} is not recognised: the first line of ${long} has more than ${mostPeekBytes} bytes; remove this line or file`,
    );
  throw new UserError(
    `${source.path} contains no files of ${id ?? 'a known trainer'} (known: ${names}): give the folder into which the trainer writes, or a JSON-lines file`,
  );
}

/** Returns a file of JSON lines whose first line is too long to be looked at. */
async function overlongFile(source: SourceFolder): Promise<string | undefined> {
  for (const { name } of source.matching(/\.(?:jsonl|ndjson)$/))
    if (source.stat(name)!.size > mostPeekBytes && !(await firstBytes(source, name)).includes(0x0a)) return name;
  return undefined;
}
