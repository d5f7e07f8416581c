// Builds the code of plug-ins as that of environments is built: esbuild bundles the file, and the type checker checks
// it. The result lists all problems; without a problem, the code can be loaded.
import { existsSync } from 'node:fs';
import { BuildError, bundleEnvironment } from '../../environments/runtime/build/build';
import { TypeChecker } from '../../environments/runtime/build/type-checker';
import type { PluginReply } from '../../protocol/plugin-link';

export class PluginBuilder {
  private readonly types: TypeChecker;

  /** @param typeCheckFile path of the bundle of type-check-worker.ts */
  constructor(typeCheckFile: string) {
    this.types = new TypeChecker(typeCheckFile);
  }

  /** Builds the file at an absolute path. */
  async build(source: string, checkTypes: boolean): Promise<PluginReply> {
    const missing = 'the file of this plug-in does not exist: restore it, or change the key that names it';
    if (!existsSync(source))
      return { problems: [{ file: source, line: 1, column: 1, message: missing, kind: 'build' }], files: [source] };
    try {
      const { code, ...bundle } = await bundleEnvironment(source);
      const types = checkTypes ? await this.types.check(source) : { problems: [], files: [] };
      const files = 'unchecked' in types ? bundle.files : [...new Set([...bundle.files, ...types.files])];
      const built = { ...bundle, source, bundle: code };
      if ('unchecked' in types) return { built, problems: [], files, unchecked: types.unchecked };
      return { built, problems: types.problems, files };
    } catch (error) {
      if (!(error instanceof BuildError)) throw error;
      const problems = [...error.problems];
      return { problems, files: [source, ...problems.map(({ file }) => file)] };
    }
  }
}
