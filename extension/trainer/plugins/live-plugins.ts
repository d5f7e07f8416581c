// The plug-ins of a run, whose code may be edited while it trains. A saved edit is built, checked and loaded, and is used
// from the next step on. Code that fails to build, type-check or load is refused, and the previous version stays in use.
// Events report accepted and refused edits. The code of each version is stored in the run folder.
import { relative, sep } from 'node:path';
import type { z } from 'zod';
import type { SourceProblem } from '../../protocol/environment-link';
import type { pluginRefusedSchema, pluginReloadSchema, pluginVersionSchema } from '../../run-data/run-events';
import type { pluginChartsSchema } from '../../run-data/charts/own-charts';
import { PluginError } from '../../plugins/client/plugin-runner';
import { installation } from '../../node/installation';
import { SourceWatcher } from '../../node/source-watcher';
import type { RunConfig } from '../config/schema';
import type { Journal } from '../run/journal';
import { keepPlugin } from '../store/plugin-store';
import type { RunFolder } from '../store/run-folder';
import { planOf, unknownKeys } from './checked-chart';
import { configuredPlugins } from './configured-plugins';
import { PluginSet, type LoadedPlugin } from './plugin-set';

export interface LivePluginsOptions {
  workspace: string;
  folder: RunFolder;
  journal: Journal;
}

export class LivePlugins {
  /** Files to watch by path of the plug-in, including those of code that was refused. */
  private readonly files = new Map<string, readonly string[]>();
  /** Errors of refused code by path, as JSON text. */
  private readonly refused = new Map<string, string>();
  /** Sentences of metrics and alarms whose latest call failed, by path. */
  private readonly failures = new Map<string, string>();
  /** The plans of the charts as they were last written, as JSON text. */
  private charts = '[]';
  /** Warnings about charts, each of which is reported once. */
  private readonly warnings = new Set<string>();
  private watcher: SourceWatcher | undefined;
  private working: Promise<void> = Promise.resolve();
  private stopped = false;

  private constructor(
    readonly set: PluginSet,
    private readonly checkTypes: boolean,
    private readonly options: LivePluginsOptions,
  ) {
    for (const { path, files } of set.current) this.files.set(path, files);
  }

  /** Opens the plug-ins that the configuration names, and stores their code. @throws UserError if one is invalid */
  static async open(config: RunConfig, options: LivePluginsOptions): Promise<LivePlugins> {
    const { check_types: checkTypes, plugins, max_environment_memory_gb: gib } = config.workbench;
    const set = await PluginSet.open(configuredPlugins(config), {
      process: {
        entry: installation.pluginHost,
        ...(gib !== null && { memoryBytes: gib * 2 ** 30 }),
        onOutput: text => process.stderr.write(`[plug-in] ${text}\n`),
      },
      workspace: options.workspace,
      timeoutMs: plugins.timeout_ms,
      checkTypes,
    });
    const { folder, journal } = options;
    try {
      for (const { code, description } of set.current)
        await journal.retryUntilWritable(() => keepPlugin(folder, code, description));
    } catch (error) {
      set.stop();
      throw error;
    }
    if (set.unchecked !== undefined)
      journal.event('setting', `plug-ins: the types in their code are not checked (${set.unchecked})`);
    if (!config.workbench.live_edit) set.build.stop();
    const opened = new LivePlugins(set, checkTypes, options);
    opened.writeCharts();
    return opened;
  }

  /** The version of each plug-in by path, for checkpoints. */
  get versions(): Record<string, string> {
    return this.set.versions;
  }

  /** Reports each plug-in whose version differs from its version in `versions`, which a checkpoint stored. */
  compareWith(versions: Readonly<Record<string, string>>): void {
    for (const [plugin, to] of Object.entries(this.versions)) {
      const from = versions[plugin];
      if (from === undefined || from === to) continue;
      const data: z.infer<typeof pluginVersionSchema> = { plugin, from, to };
      const message = `plug-in ${plugin} has changed since the checkpoint: finished steps used version ${from}, and further steps use version ${to}`;
      this.options.journal.event('plugin_version', message, data);
    }
  }

  /** Starts to watch the sources of the plug-ins. */
  watch(): void {
    if (this.watcher || this.watched().length === 0) return;
    this.watcher = new SourceWatcher(({ files }) => this.changed(files));
    this.follow();
    this.changed(this.watched()); // edits saved before the watcher was ready cause no notification
  }

  /** Makes edited code current. Called before step `step` begins. */
  apply(step: number): void {
    for (const { from, to } of this.set.apply()) {
      const data: z.infer<typeof pluginReloadSchema> = {
        ...{ plugin: to.path, from: from.code.version, to: to.code.version },
        step,
      };
      const versions = `${brief(from.code.version)} → ${brief(to.code.version)}`;
      this.options.journal.event('plugin_reload', `plug-in ${to.path} changed: ${versions}, from step ${step}`, data);
    }
    this.writeCharts();
  }

  /**
   * Reports that a metric or an alarm has failed, unless its previous call failed with the same sentence. `null` reports
   * a call without an error.
   */
  failed(plugin: string, error: PluginError | null): void {
    if (error && this.failures.get(plugin) !== error.message)
      this.options.journal.event('plugin_error', error.message, { plugin });
    if (error) this.failures.set(plugin, error.message);
    else this.failures.delete(plugin);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.watcher?.close();
    this.set.stop();
    await this.working;
  }

  /**
   * Writes the plans of all charts, from which pages and reports draw them, if they have changed. Warns of keys that no
   * metric has, because the chart would lack their lines silently.
   */
  private writeCharts(): void {
    const paths = this.set.pathsOf('chart');
    const charts = paths.map(path => planOf(this.set.plugin(path).description, path));
    const text = JSON.stringify(charts);
    if (text === this.charts) return;
    this.charts = text;
    const data: z.infer<typeof pluginChartsSchema> = { charts };
    const names = charts.map(({ name }) => name).join(', ');
    this.options.journal.event('plugin_charts', `the dashboard draws the charts of plug-ins: ${names}`, data);
    for (const [i, path] of paths.entries()) {
      const error = unknownKeys(charts[i], path);
      if (!error || this.warnings.has(error.message)) continue;
      this.warnings.add(error.message);
      this.options.journal.event('warning', error.message, { plugin: path });
    }
  }

  private changed(files: readonly string[]): void {
    this.working = this.working.then(async () => {
      for (const plugin of this.set.current)
        if (this.refused.has(plugin.path) || files.some(file => this.files.get(plugin.path)?.includes(file)))
          await this.reload(plugin);
      this.follow();
    });
  }

  private async reload(plugin: LoadedPlugin): Promise<void> {
    if (this.stopped) return;
    const { path } = plugin;
    const { folder, journal } = this.options;
    try {
      const built = await this.set.build.build(plugin.code.source, this.checkTypes);
      this.files.set(path, [...new Set([...plugin.files, ...built.files])]);
      if ('problems' in built) return this.refuse(plugin, built.problems);
      const next = await this.set.load(plugin, built.code, built.files);
      await keepPlugin(folder, next.code, next.description);
      this.set.prepare(next);
      if (this.refused.delete(path))
        journal.event('plugin_mended', `plug-in ${path}: the code on disk is valid again`, { plugin: path });
    } catch (error) {
      if (this.stopped) return;
      const { message } = error as Error;
      if (!(error instanceof PluginError))
        return journal.event('warning', `plug-ins: the saved edit is not used (${message})`);
      const [, file = plugin.code.source, line = '1'] = /^(.*):(\d+)$/.exec(error.fault.at ?? '') ?? [];
      this.refuse(plugin, [{ file, line: Number(line), column: 1, message, kind: 'load' }]);
    }
  }

  private refuse({ path, code: { version } }: LoadedPlugin, problems: readonly SourceProblem[]): void {
    const text = JSON.stringify(problems);
    if (this.stopped || this.refused.get(path) === text) return;
    this.refused.set(path, text);
    const [{ file, line, column, message }] = problems;
    const data: z.infer<typeof pluginRefusedSchema> = { plugin: path, version, problems: [...problems] };
    this.options.journal.event(
      'plugin_refused',
      `plug-in ${path} keeps version ${brief(version)}, because the saved code has an error: ${this.shown(file)}:${line}:${column} ${message.split('\n', 1)[0]}`,
      data,
    );
  }

  /** The files that a user may edit: those in the workspace, and others outside the installation. */
  private watched(): string[] {
    const { workspace } = this.options;
    const inside = (folder: string, file: string) => file.startsWith(folder + sep);
    return [...this.files.values()]
      .flat()
      .filter(
        file =>
          !file.split(sep).includes('node_modules') && (inside(workspace, file) || !inside(installation.root, file)),
      );
  }

  private follow(): void {
    this.watcher?.watch(this.watched(), this.refused.size > 0);
  }

  private shown(file: string): string {
    const { workspace } = this.options;
    return file.startsWith(workspace + sep) ? relative(workspace, file) : file;
  }
}

/** Shortens the hash of a code version for messages. */
const brief = (version: string): string => version.slice(0, 8);
