// Bundles an environment's TypeScript into one CommonJS file. The modules that the worker provides, such as `zod` and
// `ragen-workbench/api`, stay external, so a user's file can be built in a folder without node_modules. Invariant: the
// version depends only on the code and never on paths of the machine. File names in the bundle are therefore relative
// to the source's folder, and the source map is not hashed.
import { build, type BuildFailure, type Message, type StdinOptions } from 'esbuild';
import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, extname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { scoredEntry, type SourceProblem } from '../../../protocol/environment-link';
import { builtInSource, builtInText } from './built-in-environments';
import { isProvided } from './provided-names';

export interface Bundle {
  /** The bundled code, followed by its source map as a comment. */
  code: string;
  /** The source map as JSON. */
  map: string;
  /** First 16 hex digits of the SHA-256 of the code without its source map. */
  version: string;
  /** Path under which the bundle is compiled. The path is in the source's folder, but no such file exists. */
  filename: string;
  /** Absolute paths of all bundled files. */
  files: string[];
}

/** An environment with a rewards file. */
export interface ScoredSource {
  /** Absolute path of the environment's file, or `ragen-workbench/envs/<env_type>`. */
  environment: string;
  /** Absolute path of the rewards file. */
  rewards: string;
}

/**
 * Error for a source that does not build. `at` is the location of the first error (`file:line` if known). In the text
 * that the user sees, the message follows the location. It therefore begins with a verb, for example "does not build
 * (…): …". `problems` lists all errors.
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

/** Restores a bundle from its saved `code`, with the same map and version, even if the source file has changed. */
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

/** Folder of the extension. It contains `envs`, and the folder of the bundle in which this code runs. */
const installation = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Replaces the relative path from `folder` to the installation by `ragen-workbench/`. The code then does not depend on
 * the location of the installation. esbuild writes this path in the comment above each file's code and in the key of a
 * CommonJS module, `"…"(exports, module) {`. String literals elsewhere are not changed.
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
 * Bundles an environment, together with its rewards file if it has one. The bundle then exports the rewards file's
 * default export as `rewards`.
 * @param source absolute path of the entry file. For a built-in environment with a rewards file, this is the rewards
 * file, because the built-in environment is part of the installation.
 * @throws BuildError if a file is missing or does not build
 */
export async function bundleEnvironment(source: string, scored?: ScoredSource): Promise<Bundle> {
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
      'does not exist: set env_type to the name of an environment or to the path of its file',
      [fileProblem('the file of this environment does not exist: restore it')],
    );
  const refused = refusalOf(source);
  if (refused !== undefined) throw new BuildError(source, refused, [fileProblem(refused)]);
  const folder = dirname(source);
  if (scored && scored.rewards !== source && !existsSync(scored.rewards)) {
    const missing: SourceProblem = {
      ...fileProblem('the rewards file of this environment does not exist: restore it'),
      file: scored.rewards,
    };
    throw new BuildError(scored.rewards, 'does not exist: set rewards.file to the path of a rewards file', [missing]);
  }
  try {
    const result = await build({
      ...(scored ? { stdin: entryOf(source, scored) } : { entryPoints: [source] }),
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
      tsconfigRaw: {}, // no tsconfig.json of a parent folder is read
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
              if ((pluginData as { builtIn?: boolean } | undefined)?.builtIn || isImportedBuiltIn(path, source))
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
      Object.keys(result.metafile.inputs)
        .filter(file => file !== scoredEntry)
        .map(file => resolve(folder, file)),
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

/** Whether a file belongs to the built-in environments, and the entry file that imports it does not. */
function isImportedBuiltIn(file: string, entry: string): boolean {
  const folder = join(installation, 'envs') + sep;
  return file.startsWith(folder) && !entry.startsWith(folder);
}

/** Returns an entry that exports the environment as default, and the rewards file as `rewards`. */
function entryOf(source: string, { environment, rewards }: ScoredSource): StdinOptions {
  const folder = dirname(source);
  const named = (file: string): string =>
    JSON.stringify(isAbsolute(file) ? `./${relative(folder, file).replaceAll('\\', '/')}` : file);
  // Values, not re-exports, because esbuild reports a missing export only if its value is used.
  const contents = `import environment from ${named(environment)};
import scores from ${named(rewards)};
export default environment;
export const rewards = scores;
`;
  return { contents, resolveDir: folder, sourcefile: scoredEntry, loader: 'ts' };
}

/** Maximum bytes of a source file in a bundle. */
const mostBytes = 2 ** 26;

/**
 * Returns the reason why a file cannot be bundled, for example 'is not a regular file: …'; undefined if the file can be
 * bundled. Must be called before esbuild reads the file, because reading a pipe blocks until another process writes to
 * it.
 */
function refusalOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined; // esbuild reports the missing file
  if (!found.isFile()) return 'is not a regular file: replace it with a file of the environment’s code';
  return found.size > mostBytes
    ? `has ${found.size} bytes, more than the ${mostBytes} that are allowed for source files: remove generated data from it`
    : undefined;
}

/** Converts a byte offset in a line to an offset in UTF-16 code units. */
const characters = (line: string, bytes: number): number => Buffer.from(line).subarray(0, bytes).toString().length;
