// Formats the doctor's findings as text: the machine's resources, missing requirements, and their remedies. Pure
// functions.
import type { EngineReport } from '../../protocol/engine-report';
import { clockTolerance, engineSummary } from '../../protocol/engine-report-text';
import type { MachineFacts } from '../../protocol/machine-report';
import { maximum } from '../../common/lists';
import { counted, gibibytes } from '../../common/numbers';

/** `bad`: runs cannot start or may fail. `note`: a feature is unavailable. */
export interface Finding {
  name: string;
  state: 'good' | 'note' | 'bad';
  value: string;
  remedy?: string;
}

/** Facts that the extension host determines without the CLI. */
export interface EditorFacts {
  extension: string;
  editor: string;
  /** Kind of remote machine on which the extension runs, such as `ssh-remote`; undefined on the local machine. */
  remote: string | undefined;
  trusted: boolean;
  folders: string[];
  /** Names of the environment variables for which the editor stores an API key. */
  keys: string[];
  runs: { active: number; all: number };
  /**
   * The engine servers that the user has saved. `found` is the result of testing a server or, if the test failed, the
   * error message.
   */
  engines: { name: string; found: EngineReport | { problem: string } }[];
  /** The Node.js that runs trainers, or the reason why none was found. */
  node: { path: string; version: string; electron: boolean } | { problem: string };
}

/** Free bytes of memory and of disk; if fewer are free, a run is likely to fail. */
const little = { memory: 2 * 2 ** 30, disk: 2 * 2 ** 30 };

/**
 * Returns all findings in display order.
 * @param machine the CLI's report about the machine, or the reason why the CLI returned no report
 */
export function findingsOf(editor: EditorFacts, machine: MachineFacts | { problem: string }): Finding[] {
  const own = editorFindings(editor);
  if (!editor.trusted) return own; // an untrusted workspace starts no process, so the machine was not examined
  const rest = 'problem' in machine ? [noTerminal(machine)] : machineFindings(machine);
  return [...own, ...rest, ...editor.engines.map(engineFinding)];
}

/** Formats the report: one line per finding, with its remedy below. */
export function reportText(findings: readonly Finding[]): string {
  const marks = { good: '✓', note: '○', bad: '✗' };
  const bad = findings.filter(({ state }) => state === 'bad').length;
  const width = maximum(findings.map(({ name }) => name.length)) + 2;
  const verdict =
    bad === 0
      ? 'Runs can start here.'
      : `${bad} ${bad === 1 ? 'problem prevents' : 'problems prevent'} runs from working properly.`;
  const lines = findings.flatMap(({ name, state, value, remedy }) => [
    `${marks[state]} ${name.padEnd(width)}${value}`,
    ...(remedy === undefined ? [] : [`  ${' '.repeat(width)}→ ${remedy}`]),
  ]);
  return `RAGEN Doctor: ${verdict}\n\n${lines.join('\n')}\n`;
}

function editorFindings({ extension, editor, remote, trusted, folders, keys, runs, node }: EditorFacts): Finding[] {
  const location = remote === undefined ? '' : `, extension on ${remote}`;
  return [
    { name: 'RAGEN Workbench', state: 'good', value: extension },
    { name: 'Editor', state: 'good', value: `${editor}${location}` },
    folders.length > 0
      ? {
          name: 'Workspace',
          state: 'good',
          value: `${folders.join(', ')}; ${counted(runs.all, 'run')}, ${runs.active} active`,
        }
      : {
          name: 'Workspace',
          state: 'bad',
          value: 'no folder is open',
          remedy: 'open a folder (runs are stored in the subfolder .ragen/runs)',
        },
    trusted
      ? { name: 'Trust', state: 'good', value: 'the workspace is trusted' }
      : {
          name: 'Trust',
          state: 'bad',
          value: 'the workspace is not trusted, so nothing can be started',
          remedy: 'run the command Workspaces: Manage Workspace Trust',
        },
    ...(keys.length > 0
      ? [{ name: 'Keys', state: 'good' as const, value: `${keys.join(', ')}, stored by the editor` }]
      : []),
    ...(trusted ? [nodeFinding(node)] : []),
  ];
}

/** A server that cannot be used does not affect runs on this machine, so the finding is a note. */
function engineFinding({ name, found }: EditorFacts['engines'][number]): Finding {
  const title = `Engine ${name}`;
  if ('problem' in found) {
    const [, value, remedy] = /^(?:engine: )?(.*): (.*)$/s.exec(found.problem) ?? [undefined, found.problem, undefined];
    return { name: title, state: 'note', value, remedy };
  }
  const { url, key, clock_difference_s: ahead } = found;
  const value = `${url}, ${key === 'none' ? 'no key' : `key ${key}`}, ${engineSummary(found)}`;
  return ahead !== null && Math.abs(ahead) > clockTolerance
    ? {
        ...{ name: title, state: 'note', value: `${value}; its clock differs by ${Math.abs(ahead)} s` },
        remedy: 'set the clocks of both machines by NTP',
      }
    : { name: title, state: 'good', value };
}

function nodeFinding(node: EditorFacts['node']): Finding {
  return 'problem' in node
    ? { name: 'Node', state: 'bad', value: node.problem, remedy: 'install Node 20 or newer, or set ragen.nodePath' }
    : node.electron
      ? {
          name: 'Node',
          state: 'note',
          value: `${node.version}, the editor’s runtime (${node.path})`,
          remedy: 'install Node 20 or newer: the editor’s runtime crashes at allocations near 1 GiB',
        }
      : { name: 'Node', state: 'good', value: `${node.version} (${node.path})` };
}

const noTerminal = ({ problem }: { problem: string }): Finding => ({
  name: 'Trainer',
  state: 'bad',
  value: problem,
  remedy: 'install the extension again; if that does not help, report the problem with the log (output channel RAGEN)',
});

function machineFindings({ platform, cpu, memory, onnxruntime, disk, folders, optional }: MachineFacts): Finding[] {
  const limit = memory.limit === null ? '' : `, limited to ${gibibytes(memory.limit)} by a control group`;
  return [
    { name: 'System', state: 'good', value: platform },
    { name: 'Processor', state: 'good', value: `${cpu.model}, ${cpu.usable} of ${cpu.cores} cores usable` },
    {
      name: 'Memory',
      value: `${gibibytes(memory.available)} available of ${gibibytes(memory.total)}${limit}`,
      ...(memory.available < little.memory
        ? { state: 'bad', remedy: 'close other programs, or train a smaller model (New Run shows the memory needed)' }
        : { state: 'good' }),
    },
    {
      name: 'Disk',
      value: `${gibibytes(disk.free)} free in ${disk.folder}`,
      ...(disk.free < little.disk
        ? { state: 'bad', remedy: 'free space, delete runs, or keep fewer checkpoints (workbench.keep_checkpoints)' }
        : { state: 'good' }),
    },
    ...folders.map((folder): Finding =>
      folder.problem === null
        ? { name: 'Permissions', state: 'good', value: `${folder.path} (${folder.for})` }
        : {
            name: 'Permissions',
            state: 'bad',
            value: `${folder.problem}; used for ${folder.for}`,
            remedy: 'grant yourself write permission for this folder',
          },
    ),
    { name: 'onnxruntime', state: 'good', value: `${onnxruntime.version}; device "auto" selects ${onnxruntime.auto}` },
    ...onnxruntime.providers.map(providerFinding),
    ...optional.map(({ name, found, for: use }): Finding =>
      found === null
        ? { name, state: 'note', value: 'not found', remedy: `needed only for ${use}` }
        : { name, state: 'good', value: found },
    ),
  ];
}

/**
 * Explains how to get a provider's library. The extension is packaged once per platform. Each package contains the
 * libraries of all providers of its platform except CUDA.
 */
const libraryOf = (provider: string): string =>
  provider === 'cuda'
    ? 'not needed, because webgpu uses the same GPU (to use CUDA, build the extension from source)'
    : 'reinstall the extension from its package for this platform';

function providerFinding({
  provider,
  known,
  installed,
  self_check,
}: MachineFacts['onnxruntime']['providers'][number]): Finding {
  const name = `  ${provider}`;
  if (!known)
    return {
      name,
      state: 'note',
      value: 'not included in this build of onnxruntime',
      remedy: 'available on another operating system',
    };
  if (!installed) return { name, state: 'note', value: 'library not installed', remedy: libraryOf(provider) };
  if (provider === 'cpu') return { name, state: 'good', value: 'installed' };
  if (!self_check) return { name, state: 'note', value: 'installed, but not tested, because no GPU was found' };
  return { name, state: self_check.faster ? 'good' : 'note', value: self_check.about };
}
