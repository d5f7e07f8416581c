// Type-checks environments with TypeScript's language service. The service stays in memory, so a second check takes a
// fraction of the first check's time. Compiler options come from the nearest tsconfig.json; without a tsconfig.json,
// strict defaults apply. Style errors (unused names, unreachable code) are not reported, and modules resolve as in
// esbuild. Types of `zod`, the environment API and Node.js come from the installation, so that files outside any
// node_modules can be checked.
import { existsSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import type TypeScript from 'typescript';
import type { SourceProblem } from '../../../protocol/environment-link';
import { builtInSource } from './built-in-environments';
import { isProvided } from './provided-names';

export interface TypeCheck {
  problems: SourceProblem[];
  /** Absolute paths of the user's files that were checked. */
  files: string[];
}

export class TypeCheckService {
  /** Projects by source file. Parsed package files are shared between projects. */
  private readonly projects = new Map<string, Project>();
  private readonly registry: TypeScript.DocumentRegistry;

  /** @param installation folder that contains `envs/api`, and node_modules with zod and Node's types */
  constructor(
    private readonly ts: typeof TypeScript,
    private readonly installation: string,
  ) {
    this.registry = ts.createDocumentRegistry();
  }

  /** Checks the present contents of the file and of the files that it imports. Packages are not checked. */
  check(source: string): TypeCheck {
    const settings = this.ts.findConfigFile(dirname(source), this.ts.sys.fileExists);
    const stamp = settings === undefined ? '' : `${settings}\n${this.ts.sys.readFile(settings)}`;
    let project = this.projects.get(source);
    if (project?.stamp !== stamp) {
      project?.dispose();
      project = new Project(this.ts, this.registry, this.installation, source, settings, stamp);
      this.projects.set(source, project);
    }
    return project.check();
  }
}

/** Options that override every tsconfig.json: resolution as in esbuild, no output, no style checks. */
function forced(ts: typeof TypeScript): TypeScript.CompilerOptions {
  return {
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    esModuleInterop: true,
    resolveJsonModule: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
    composite: false,
    incremental: false,
    declaration: false,
    noUnusedLocals: false,
    noUnusedParameters: false,
    allowUnreachableCode: true,
    allowUnusedLabels: true,
  };
}

/** One environment with its compiler options. */
class Project {
  private readonly declarations: string[];
  private readonly options: TypeScript.CompilerOptions;
  private readonly settingsProblems: SourceProblem[];
  /** Text and version of each file, by path; `read` is the number of the check that last read the file. */
  private readonly texts = new Map<string, { text: string; version: number; read: number }>();
  private readonly service: TypeScript.LanguageService;
  private checks = 0;

  constructor(
    private readonly ts: typeof TypeScript,
    registry: TypeScript.DocumentRegistry,
    private readonly installation: string,
    private readonly source: string,
    settings: string | undefined,
    /** Path and text of the tsconfig.json. If either has changed at the next check, the project is created anew. */
    readonly stamp: string,
  ) {
    const folder = dirname(source);
    const own = { target: ts.ScriptTarget.ES2022, lib: ['lib.es2023.d.ts'], strict: true, types: [] };
    const given = settings === undefined ? undefined : readSettings(ts, settings);
    this.options = { ...(given?.options ?? own), ...forced(ts) };
    this.settingsProblems = given?.problems ?? [];
    this.declarations = (given?.fileNames ?? []).filter(file => /\.d\.[cm]?ts$/.test(file));
    const nodeTypes = join('node_modules', '@types', 'node', 'index.d.ts');
    if (!aboveOf(folder).some(above => existsSync(join(above, nodeTypes))))
      this.declarations.push(join(installation, nodeTypes));
    else if (!given) this.options.types = ['node'];
    this.service = ts.createLanguageService(this.host(folder), registry);
  }

  check(): TypeCheck {
    const { service, ts } = this;
    this.checks++;
    const files = service
      .getProgram()!
      .getSourceFiles()
      .map(({ fileName }) => fileName);
    const own = files.filter(file => this.isUsers(file));
    const found = own.flatMap(file => [
      ...service.getSyntacticDiagnostics(file),
      ...service.getSemanticDiagnostics(file),
    ]);
    const problems = found.filter(({ category }) => category === ts.DiagnosticCategory.Error);
    return {
      problems: [...this.settingsProblems, ...problems.map(diagnostic => problemOf(ts, diagnostic, this.source))],
      files: own.map(file => join(file)),
    };
  }

  dispose(): void {
    this.service.dispose();
  }

  /**
   * Whether errors in a file are reported. Errors in packages are not reported. The extension's own files are
   * type-checked when the extension is built. Errors in such a file are therefore reported only if the file is the
   * environment that is checked.
   */
  private isUsers(file: string): boolean {
    if (file.includes('/node_modules/')) return false;
    const shipped = join(this.installation, 'envs') + sep;
    return !join(file).startsWith(shipped) || this.source.startsWith(shipped);
  }

  private host(folder: string): TypeScript.LanguageServiceHost {
    const { ts, installation } = this;
    const { sys } = ts;
    const cache = ts.createModuleResolutionCache(folder, name => name, this.options);
    const resolution = {
      fileExists: sys.fileExists,
      readFile: sys.readFile,
      directoryExists: sys.directoryExists,
      realpath: sys.realpath,
    };
    const api = 'ragen-workbench/api';
    const provided = (name: string): TypeScript.ResolvedModuleFull | undefined => {
      if (!name.startsWith(api))
        return ts.resolveModuleName(name, join(installation, 'envs', 'any.ts'), this.options, resolution)
          .resolvedModule;
      const file = join(installation, 'envs', 'api', `${name.slice(api.length + 1) || 'environment'}.ts`);
      return { resolvedFileName: file, extension: ts.Extension.Ts, isExternalLibraryImport: true };
    };
    return {
      ...resolution,
      getCompilationSettings: () => this.options,
      getScriptFileNames: () => [...this.declarations, this.source],
      getScriptVersion: file => String(this.read(file)?.version ?? 0),
      getScriptSnapshot: file => {
        const found = this.read(file);
        return found && ts.ScriptSnapshot.fromString(found.text);
      },
      getCurrentDirectory: () => folder,
      getDefaultLibFileName: options =>
        join(installation, 'node_modules', 'typescript', 'lib', ts.getDefaultLibFileName(options)),
      useCaseSensitiveFileNames: () => sys.useCaseSensitiveFileNames,
      resolveModuleNameLiterals: (names, from, redirected, options) => {
        cache.clear(); // files may have been added or removed since the last check
        return names.map(({ text }) => {
          const builtIn = builtInSource(installation, text);
          if (builtIn !== undefined)
            return { resolvedModule: { resolvedFileName: builtIn, extension: ts.Extension.Ts } };
          return isProvided(text)
            ? { resolvedModule: provided(text) }
            : ts.resolveModuleName(text, from, options, resolution, cache, redirected);
        });
      },
    };
  }

  /**
   * Returns the text and version of a file; undefined if the file does not exist. Each check reads a file at most once,
   * and a package's file is read only by the first check that needs it.
   */
  private read(file: string): { text: string; version: number } | undefined {
    const known = this.texts.get(file);
    if (known && (known.read === this.checks || file.includes('/node_modules/'))) return known;
    // fileExists returns true for regular files only
    const text = this.ts.sys.fileExists(file) ? this.ts.sys.readFile(file) : undefined;
    if (text === undefined) {
      this.texts.delete(file);
      return undefined;
    }
    const version = known ? known.version + Number(known.text !== text) : this.checks;
    const found = { text, version, read: this.checks };
    this.texts.set(file, found);
    return found;
  }
}

/** Returns the folder and all its parents up to the root. */
function aboveOf(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...aboveOf(above)];
}

function readSettings(ts: typeof TypeScript, file: string) {
  const read: { config?: unknown; error?: TypeScript.Diagnostic } = ts.readConfigFile(file, ts.sys.readFile);
  const { config, error } = read;
  const parsed = ts.parseJsonConfigFileContent(config ?? {}, ts.sys, dirname(file), undefined, file);
  // Error 18003 means that no input files were found; this error is ignored, because the entry file is passed
  // explicitly.
  const errors = [...(error ? [error] : []), ...parsed.errors].filter(({ code }) => code !== 18003);
  return {
    options: parsed.options,
    fileNames: parsed.fileNames,
    problems: errors.map(diagnostic => problemOf(ts, diagnostic, file)),
  };
}

function problemOf(ts: typeof TypeScript, diagnostic: TypeScript.Diagnostic, source: string): SourceProblem {
  const { file, start = 0, length = 0, messageText } = diagnostic;
  const message = ts.flattenDiagnosticMessageText(messageText, '\n');
  if (!file) return { file: source, line: 1, column: 1, message, kind: 'type' };
  const [from, to] = [start, start + length].map(offset => file.getLineAndCharacterOfPosition(offset));
  return {
    file: join(file.fileName),
    line: from.line + 1,
    column: from.character + 1,
    endLine: to.line + 1,
    endColumn: to.character + 1,
    message,
    kind: 'type',
  };
}
