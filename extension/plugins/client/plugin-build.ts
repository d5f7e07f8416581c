// Builds plug-ins in a process of its own, so that a build never waits for a plug-in's function and no plug-in can
// disturb it. The process is kept while a run watches its files, because the type checker is then warm.
import { UserError } from '../../common/user-error';
import type { PluginCode } from '../../protocol/plugin-link';
import type { SourceProblem } from '../../protocol/environment-link';
import { PluginProcess, type PluginProcessOptions } from './plugin-process';

/** Time limit of a build with its type check in milliseconds. */
const buildMs = 60_000;

/** The outcome of a build: code, or problems that the user must fix. `files` are the files to watch. */
export type BuiltPlugin = { files: string[]; unchecked?: string } & (
  { code: PluginCode } | { problems: [SourceProblem, ...SourceProblem[]] }
);

export class PluginBuild {
  private process: PluginProcess | undefined;

  constructor(private readonly options: PluginProcessOptions) {}

  /** Builds the file at an absolute path and, if asked, checks its types. */
  async build(source: string, checkTypes: boolean): Promise<BuiltPlugin> {
    if (!this.process?.alive) this.process = new PluginProcess(this.options);
    const reply = await this.process.ask({ method: 'build', source, checkTypes }, buildMs);
    if (!('problems' in reply)) {
      const reason = 'fault' in reply ? reply.fault.what : 'sent an unexpected reply';
      throw new UserError(`plug-in ${source}: its build ${reason}: repeat the command`);
    }
    const { files, problems } = reply;
    const [first, ...more] = problems;
    if (first) return { files, problems: [first, ...more] };
    if (!('built' in reply)) throw new UserError(`plug-in ${source}: its build has no result: repeat the command`);
    return { files, code: reply.built, ...(reply.unchecked !== undefined && { unchecked: reply.unchecked }) };
  }

  stop(): void {
    this.process?.stop();
  }
}

/** Returns a problem as `file:line:column message`, with the number of further problems. */
export function problemSentence([{ file, line, column, message }, ...more]: readonly SourceProblem[]): string {
  const others = more.length > 0 ? ` (and ${more.length} more)` : '';
  return `${file}:${line}:${column} ${message.split('\n', 1)[0].replace(/\.$/, '')}${others}`;
}
