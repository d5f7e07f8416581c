// Builds an environment's TypeScript into one CommonJS text. `zod` and `ragen-workbench/api` stay outside: the worker provides them,
// so a user's file builds in a folder without node_modules. Invariant: the version depends on the code alone, never on the
// machine's paths: names in the bundle are relative to the source's folder and the source map is not hashed.
import { build, type BuildFailure, type Message } from 'esbuild';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { isProvided } from './provided-names';

export interface Bundle {
  /** The code with its source map inline. */
  code: string;
  /** The source map's JSON. */
  map: string;
  /** First 16 hex digits of the code's sha256. */
  version: string;
  /** Where the bundle would lie: beside its source. */
  filename: string;
  /** Absolute paths of all files that went in. */
  files: string[];
}

/** Why a source did not build: the place `file:line` where known, and a sentence's predicate. */
export class BuildError extends Error {
  override readonly name = 'BuildError';
  constructor(
    readonly at: string,
    message: string,
  ) {
    super(message);
  }
}

/**
 * Bundles the environment whose entry is `source` (absolute path).
 * @throws BuildError when the file is missing or does not build.
 */
export async function bundleEnvironment(source: string): Promise<Bundle> {
  if (!existsSync(source))
    throw new BuildError(
      source,
      'does not exist: correct env_type to the name of an environment or the path of its file',
    );
  const folder = dirname(source);
  const stem = join(folder, basename(source, extname(source)));
  try {
    const result = await build({
      entryPoints: [source],
      absWorkingDir: folder,
      outfile: `${stem}.cjs`,
      bundle: true,
      write: false,
      metafile: true,
      platform: 'node',
      format: 'cjs',
      target: 'node20',
      charset: 'utf8',
      sourcemap: 'external',
      tsconfigRaw: {}, // a tsconfig.json somewhere above must not change the code
      supported: { 'dynamic-import': false },
      define: { 'import.meta.url': '__importMetaUrl' },
      logLevel: 'silent',
      plugins: [
        {
          name: 'provided-by-the-worker',
          setup: ({ onResolve }) =>
            onResolve({ filter: /^(zod|ragen-workbench)(\/|$)/ }, ({ path }) =>
              isProvided(path) ? { path, external: true } : undefined,
            ),
        },
      ],
    });
    const [map, code] = ['.map', '.cjs'].map(
      end => result.outputFiles.find(file => file.path.endsWith(end))?.text ?? '',
    );
    const version = createHash('sha256').update(code).digest('hex').slice(0, 16);
    return {
      code: `${code}//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString('base64')}\n`,
      map,
      version,
      filename: `${stem}.${version}.cjs`,
      files: Object.keys(result.metafile.inputs).map(file => resolve(folder, file)),
    };
  } catch (error) {
    const [first]: (Message | undefined)[] = (error as Partial<BuildFailure>).errors ?? [];
    if (!first) throw new BuildError(source, `does not build (${(error as Error).message}): mend the file and save it`);
    const at = first.location ? `${resolve(folder, first.location.file)}:${first.location.line}` : source;
    throw new BuildError(at, `does not build (${first.text}): mend the file and save it`);
  }
}
