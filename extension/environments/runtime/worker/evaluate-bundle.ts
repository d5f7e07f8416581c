// Evaluates a bundle of workspace code and returns its exports. The bundle is compiled under a path in the source's
// folder, so that breakpoints and stack traces refer to the user's .ts file. Provided modules come from this process;
// other modules are resolved from the source's folder.
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compileFunction } from 'node:vm';
import { builtInFolder } from '../build/built-in-environments';
import { providedModules } from '../build/provided-modules';
import { isProvided } from '../build/provided-names';

/** @param bundle `code` is compiled under the path `filename`; `source` is the absolute path of the entry file */
export function evaluateBundle({
  code,
  filename,
  source,
}: Record<'code' | 'filename' | 'source', string>): Record<string, unknown> {
  const ownRequire = createRequire(source);
  const require = (name: string): unknown => (isProvided(name) ? providedModules[name] : ownRequire(name));
  const module = { exports: {} as Record<string, unknown> };
  const parameters = ['exports', 'require', 'module', '__filename', '__dirname', '__importMetaUrl', builtInFolder];
  const run = compileFunction(code, parameters, { filename }) as (...values: unknown[]) => void;
  const builtIn = new URL('../envs/', import.meta.url).href; // the folder `envs` next to this bundle's folder
  run(module.exports, require, module, source, dirname(source), pathToFileURL(source).href, builtIn);
  return module.exports;
}
