// Bundles an environment's TypeScript into one CommonJS text. `zod` and `ragen-workbench/api` stay external and the
// worker provides them, so a user's file builds in a folder without node_modules. Invariant: the version depends on the
// code only, never on paths of the machine. File names in the bundle are relative to the source's folder, and the
// source map is not hashed.
import { build, type BuildFailure, type Message } from 'esbuild';
import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SourceProblem } from '../../../protocol/environment-link';
import { builtInSource, builtInText } from './built-in';
import { isProvided } from './provided-names';

export interface Bundle {
  /** The code with its inline source map. */
  code: string;
  /** The source map as JSON. */
  map: string;
  /** First 16 hex digits of the SHA-256 of the code. */
  version: string;
  /** Virtual path of the bundle, beside its source. */
  filename: string;
  /** Absolute paths of all bundled files. */
  files: string[];
}

/**
 * Thrown when a source does not build. Carries the location of the first error (`file:line` where known), a message
 * that completes the sentence `<location> …` ("does not build (…): …"), and all problems.
 */
export class BuildError extends Error {
  override readonly name = 'BuildError';
  constructor(
    readonly at: string,
    message: string,
    readonly problems: readonly SourceProblem[],
  ) {
    super(message);
  }
}

const mapComment = '//# sourceMappingURL=data:application/json;base64,';

/**
 * Restores the bundle that was saved as `code`: same code, map and version, independent of the current content of the
 * file.
 */
export function keptBundle(source: string, code: string, files: string[]): Bundle {
  const end = code.lastIndexOf(mapComment);
  const map = Buffer.from(code.slice(end + mapComment.length), 'base64').toString('utf8');
  return bundleOf(source, code.slice(0, end), map, files);
}

function bundleOf(source: string, code: string, map: string, files: string[]): Bundle {
  const version = createHash('sha256').update(code).digest('hex').slice(0, 16);
  return {
    code: `${code}${mapComment}${Buffer.from(map).toString('base64')}\n`,
    map,
    version,
    filename: `${stemOf(source)}.${version}.cjs`,
    files,
  };
}

/** Parent of the folder that holds this bundle; it also holds `envs`. */
const installation = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Replaces the path from `folder` to the installation with `ragen-workbench/`, so that the code does not depend on
 * where the installation lies. esbuild writes a file's path in a comment above its code and as the key of a CommonJS
 * module, `"…"(exports, module) {`. String literals in the code are not changed.
 */
function withoutInstallationPath(code: string, folder: string): string {
  const way = relative(folder, installation).replaceAll('\\', '/');
  if (!way.startsWith('..')) return code;
  const named = (from: string): string => from.replace(`${way}/`, 'ragen-workbench/');
  return code
    .replaceAll(/^ *\/\/ \.\..*$/gm, line => (line.trimStart().startsWith(`// ${way}/`) ? named(line) : line))
    .replaceAll(/^ *"\.\.[^"\n]*"\(/gm, key => (key.trimStart().startsWith(`"${way}/`) ? named(key) : key));
}

const stemOf = (source: string): string => join(dirname(source), basename(source, extname(source)));

/**
 * Bundles the environment with the entry file `source` (absolute path).
 * @throws BuildError when the file is missing or does not build.
 */
export async function bundleEnvironment(source: string): Promise<Bundle> {
  const fileProblem = (message: string): SourceProblem => ({
    file: source,
    line: 1,
    column: 1,
    message,
    kind: 'build',
  });
  if (!existsSync(source))
    throw new BuildError(
      source,
      'does not exist: correct env_type to the name of an environment or the path of its file',
      [fileProblem('this environment is gone: restore the file')],
    );
  const refused = refusalOf(source);
  if (refused !== undefined) throw new BuildError(source, refused, [fileProblem(refused)]);
  const folder = dirname(source);
  try {
    const result = await build({
      entryPoints: [source],
      absWorkingDir: folder,
      outfile: `${stemOf(source)}.cjs`,
      bundle: true,
      write: false,
      metafile: true,
      platform: 'node',
      format: 'cjs',
      external: ['onnxruntime-node'], // native code cannot be bundled
      target: 'node20',
      charset: 'utf8',
      sourcemap: 'external',
      tsconfigRaw: {}, // ignore any tsconfig.json in a parent folder
      supported: { 'dynamic-import': false },
      define: { 'import.meta.url': '__importMetaUrl' },
      logLevel: 'silent',
      plugins: [
        {
          name: 'provided-by-the-worker',
          setup: ({ onResolve, onLoad }) => {
            onResolve({ filter: /^(zod|pngjs|ragen-workbench)(\/|$)/ }, ({ path: name }) => {
              if (isProvided(name)) return { path: name, external: true };
              const path = builtInSource(installation, name);
              return path === undefined ? undefined : { path, pluginData: { builtIn: true } };
            });
            onLoad({ filter: /.*/ }, ({ path, pluginData }) => {
              if ((pluginData as { builtIn?: boolean } | undefined)?.builtIn)
                return { contents: builtInText(installation, path), loader: 'ts' };
              const refused = refusalOf(path);
              return refused === undefined ? undefined : { errors: [{ text: `${path} ${refused}` }] };
            });
          },
        },
      ],
    });
    const [map, code] = ['.map', '.cjs'].map(
      end => result.outputFiles.find(file => file.path.endsWith(end))?.text ?? '',
    );
    return bundleOf(
      source,
      withoutInstallationPath(code, folder),
      map,
      Object.keys(result.metafile.inputs).map(file => resolve(folder, file)),
    );
  } catch (error) {
    const errors: Message[] = (error as Partial<BuildFailure>).errors ?? [];
    if (errors.length === 0) {
      const { message } = error as Error;
      throw new BuildError(source, `does not build (${message}): fix the file and save it`, [fileProblem(message)]);
    }
    const problems = errors.map(({ text, location }): SourceProblem => {
      if (!location) return fileProblem(text);
      const { file, line, column, length } = location; // esbuild's columns are 0-based byte offsets
      const sourcePosition = { file: resolve(folder, file), line, column: characters(location.lineText, column) + 1 };
      if (length === 0) return { ...sourcePosition, message: text, kind: 'build' };
      const endColumn = characters(location.lineText, column + length) + 1;
      return { ...sourcePosition, endLine: line, endColumn, message: text, kind: 'build' };
    });
    const at = errors[0].location ? `${problems[0].file}:${problems[0].line}` : source;
    throw new BuildError(at, `does not build (${errors[0].text}): fix the file and save it`, problems);
  }
}

/** Maximum size in bytes of a file in a bundle. */
const mostBytes = 2 ** 26;

/**
 * Returns why a file cannot be bundled, as a predicate, or undefined if it can. Checked before esbuild reads the file,
 * because reading a pipe would block until a writer opens it.
 */
function refusalOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined; // esbuild reports the missing file
  if (!found.isFile()) return 'is not a regular file: put the environment’s code there';
  return found.size > mostBytes
    ? `has ${found.size} bytes, more than the ${mostBytes} of a file of code: restore it`
    : undefined;
}

/** Number of UTF-16 code units in the first `bytes` bytes of a line. */
const characters = (line: string, bytes: number): number => Buffer.from(line).subarray(0, bytes).toString().length;
