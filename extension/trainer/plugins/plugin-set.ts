// The plug-ins of a run: their current code, by path, and the calls of their functions. Files are built and checked when
// the run is opened; live-plugins.ts prepares edited code, which `apply` makes current between two steps, so that a step
// uses one version from its beginning to its end. Without plug-ins, no process is started.
import { resolve } from 'node:path';
import { UserError } from '../../common/user-error';
import { PluginBuild, problemSentence } from '../../plugins/client/plugin-build';
import { PluginRunner } from '../../plugins/client/plugin-runner';
import type { PluginProcessOptions } from '../../plugins/client/plugin-process';
import type { PluginCode, PluginDescription, PluginKind } from '../../protocol/plugin-link';
import type { CallablePlugin } from './checked-values';
import type { ConfiguredPlugin } from './configured-plugins';
import { ruleOf } from './checked-alarm';
import { planOf } from './checked-chart';

/** A plug-in with code that builds and loads. */
export interface LoadedPlugin extends ConfiguredPlugin {
  code: PluginCode;
  description: PluginDescription;
  /** Files to watch: the sources, and files from which they import only types. */
  files: readonly string[];
}

/** A prepared version of a plug-in that replaces the current one at the next step. */
export interface PluginChange {
  from: LoadedPlugin;
  to: LoadedPlugin;
}

export interface PluginSetOptions {
  process: PluginProcessOptions;
  workspace: string;
  /** Whether code with type errors is refused. */
  checkTypes: boolean;
  /** Time limit of a call in milliseconds. */
  timeoutMs: number;
}

export class PluginSet {
  /** Builds code; stopped once the run has opened, unless its files are watched. */
  readonly build: PluginBuild;
  readonly runner: PluginRunner;
  private readonly plugins = new Map<string, LoadedPlugin>();
  private readonly prepared = new Map<string, LoadedPlugin>();
  /** Why types were not checked; undefined if they were, or if no check was asked for. */
  unchecked: string | undefined;

  private constructor(readonly options: PluginSetOptions) {
    this.build = new PluginBuild(options.process);
    this.runner = new PluginRunner(options.process, options.timeoutMs);
  }

  /** Builds, checks and loads plug-ins. @throws UserError if the code of one is invalid */
  static async open(configured: readonly ConfiguredPlugin[], options: PluginSetOptions): Promise<PluginSet> {
    const set = new PluginSet(options);
    try {
      for (const plugin of configured) set.plugins.set(plugin.path, await set.open(plugin));
      return set;
    } catch (error) {
      set.stop();
      throw error;
    }
  }

  get current(): readonly LoadedPlugin[] {
    return [...this.plugins.values()];
  }

  /** The version of each plug-in by path, for checkpoints. */
  get versions(): Record<string, string> {
    return Object.fromEntries(this.current.map(({ path, code }) => [path, code.version]));
  }

  /**
   * Loads built code and checks that it is of the kind that its key needs.
   * @throws PluginError or UserError if it is not
   */
  async load({ key, path, kind }: ConfiguredPlugin, code: PluginCode, files: readonly string[]): Promise<LoadedPlugin> {
    const description = await this.runner.load(path, code);
    if (description.kind !== kind)
      throw new UserError(
        `plug-in ${path} defines a plug-in of the kind ${description.kind}, but ${key} needs the kind ${kind}: name another file`,
      );
    const { name } = description;
    const same = this.current.find(
      other => other.kind === kind && other.path !== path && other.description.name === name,
    );
    if (same)
      throw new UserError(`plug-in ${path} has the name ${name}, which ${same.path} has too: give it another name`);
    if (kind === 'alarm') ruleOf(description, path);
    if (kind === 'chart') planOf(description, path);
    return { key, path, kind, code, description, files };
  }

  /** Makes a version current at the next `apply`. The version that is already current cancels an earlier change. */
  prepare(plugin: LoadedPlugin): void {
    this.prepared.set(plugin.path, plugin);
  }

  /** Makes the prepared versions current. Returns those whose code differs from the previous one. */
  apply(): PluginChange[] {
    const changes = [...this.prepared].map(([path, to]) => ({ from: this.plugins.get(path)!, to }));
    for (const { to } of changes) this.plugins.set(to.path, to);
    this.prepared.clear();
    return changes.filter(({ from, to }) => from.code.version !== to.code.version);
  }

  /** Paths of the plug-ins of a kind, in the order of the configuration. */
  pathsOf(kind: PluginKind): string[] {
    return this.current.flatMap(plugin => (plugin.kind === kind ? [plugin.path] : []));
  }

  /** Returns the plug-in at a path, for calls of its current code. */
  plugin(path: string): CallablePlugin {
    const plugin = this.plugins.get(path);
    if (!plugin) throw new Error(`plug-in ${path} is not loaded`);
    const { code, description } = plugin;
    return { path, description, call: (name, ...args) => this.runner.call(path, code, name, ...args) };
  }

  stop(): void {
    this.build.stop();
    this.runner.stop();
  }

  private async open(plugin: ConfiguredPlugin): Promise<LoadedPlugin> {
    const { workspace, checkTypes } = this.options;
    const built = await this.build.build(resolve(workspace, plugin.path), checkTypes);
    if ('problems' in built)
      throw new UserError(
        `plug-in ${plugin.path} (${plugin.key}) has an error: ${problemSentence(built.problems)}: fix the file, then start the run again`,
      );
    this.unchecked ??= built.unchecked;
    return this.load(plugin, built.code, built.files);
  }
}
