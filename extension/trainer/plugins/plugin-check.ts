// Checks a plug-in before a run uses it: the file builds and its types are correct, its definition loads, and its
// functions return valid values for sample data, the same ones for equal arguments. Used by `ragen plugin check`.
import { isDeepStrictEqual } from 'node:util';
import { resolve } from 'node:path';
import { installation } from '../../node/installation';
import { PluginBuild, problemSentence } from '../../plugins/client/plugin-build';
import { PluginError, PluginRunner } from '../../plugins/client/plugin-runner';
import type { PluginCode, PluginDescription, PluginKind } from '../../protocol/plugin-link';
import type { CallablePlugin } from './checked-values';
import { pluginTrials } from './plugin-trials';

export interface PluginCheck {
  name: string;
  state: 'passed' | 'failed';
  /** What was found, or the error in one sentence. */
  evidence: string;
}

export interface PluginReport {
  file: string;
  /** Null if the file does not load. */
  kind: PluginKind | null;
  name: string | null;
  version: string | null;
  checks: PluginCheck[];
}

/**
 * Checks the plug-in in a file.
 * @param file path, relative to the workspace or absolute
 * @param timeoutMs time limit of a call
 */
export async function checkPlugin(file: string, workspace: string, timeoutMs: number): Promise<PluginReport> {
  const options = { entry: installation.pluginHost, onOutput: (text: string) => void process.stderr.write(text) };
  const build = new PluginBuild(options);
  const runner = new PluginRunner(options, timeoutMs);
  const report: PluginReport = { file, kind: null, name: null, version: null, checks: [] };
  const note = (name: string, evidence: string, state: PluginCheck['state'] = 'passed') =>
    void report.checks.push({ name, state, evidence });
  try {
    const builds = 'the file builds, and its types are correct';
    const built = await build.build(resolve(workspace, file), true);
    if ('problems' in built) {
      note(builds, problemSentence(built.problems), 'failed');
      return report;
    }
    note(builds, built.unchecked === undefined ? `Version ${built.code.version}.` : `Not checked: ${built.unchecked}.`);
    const plugin = await load(runner, file, built.code, note);
    if (!plugin) return report;
    const { kind, name } = plugin.description;
    Object.assign(report, { kind, name, version: built.code.version });
    const trials = pluginTrials[kind].filter(({ isFor }) => isFor?.(plugin.description) ?? true);
    for (const { name, run } of trials) await tryOut(name, () => run(plugin), note);
    return report;
  } finally {
    build.stop();
    runner.stop();
  }
}

type Note = (name: string, evidence: string, state?: PluginCheck['state']) => void;

async function load(
  runner: PluginRunner,
  file: string,
  code: PluginCode,
  note: Note,
): Promise<CallablePlugin | undefined> {
  const loads = 'the definition loads';
  try {
    const description: PluginDescription = await runner.load(file, code);
    note(loads, `${description.kind} ${description.name}`);
    return { path: file, description, call: (name, ...args) => runner.call(file, code, name, ...args) };
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    note(loads, error.message, 'failed');
    return undefined;
  }
}

/** Runs a trial twice. Equal arguments must give equal results. */
async function tryOut(name: string, run: () => Promise<unknown>, note: Note): Promise<void> {
  try {
    const [first, second] = [await run(), await run()];
    if (isDeepStrictEqual(first, second)) return note(name, 'Valid, and the same in a second call.');
    note(name, 'A second call with equal arguments gave another result: use no clock and no Math.random.', 'failed');
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    note(name, error.message, 'failed');
  }
}
