// Builds bundles as esbuild.mjs does, into a temporary folder: by default the two bundles of the environment process.
// Also writes environment sources for tests.
import { build } from 'esbuild';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  EnvironmentProcess,
  type EnvironmentProcessOptions,
} from '../../extension/environments/client/environment-process';
import type { EnvironmentNotice } from '../../extension/protocol/environment-link';

/** The repository's root. */
export const root = resolve(__dirname, '../..');

/**
 * Builds bundles into `folder`, which is a temporary folder by default. `sources` maps the name of each bundle to its
 * source file, relative to the repository's root. Returns the folder.
 */
export async function buildBundles(
  sources: Readonly<Record<string, string>>,
  folder = mkdtempSync(join(tmpdir(), 'ragen-bundles-')),
): Promise<string> {
  await build({
    entryPoints: Object.fromEntries(Object.entries(sources).map(([name, file]) => [name, join(root, file)])),
    outdir: folder,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    loader: { '.proto': 'text', '.wasm': 'binary' },
    external: ['vscode', 'onnxruntime-node', 'esbuild', '@napi-rs/canvas'],
    logLevel: 'warning',
    define: { 'import.meta.url': '__importMetaUrl' },
    banner: { js: "const __importMetaUrl = require('node:url').pathToFileURL(__filename).href;" },
  });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
  return folder;
}

/** Builds the environment process and returns the path of its entry. */
export async function buildEntry(): Promise<string> {
  const folder = await buildBundles({
    'environment-host': 'extension/environments/runtime/main.ts',
    'environment-worker': 'extension/environments/runtime/worker/worker.ts',
  });
  return join(folder, 'environment-host.cjs');
}

/** A temporary folder for environment sources; no node_modules exists in a parent folder. */
export function workspace(): { folder: string; write(name: string, text: string): string } {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-workspace-'));
  const write = (name: string, text: string) => {
    const file = join(folder, name);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  return { folder, write };
}

/**
 * Source of an environment that counts its steps and ends at ten. The statements of `step` run at the start of each
 * step, with `action`, `seed` and `count` in scope.
 */
export const counter = (step = '', more: { top?: string; reset?: string } = {}) => `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
${more.top ?? ''}
export default defineEnvironment({
  name: 'counter',
  config: z.object({ start: z.number().default(0) }),
  actions: { 1: 'Add', 2: 'Bad' },
  instruction: config => 'Count from ' + config.start + '.',
  create(config) {
    let count = config.start;
    let seed = 0;
    return {
      reset(options) {
        seed = options.seed;
        ${more.reset ?? ''}
        return { observation: 'seed ' + seed + ' member ' + options.member + ' count ' + count };
      },
      step(action) {
        ${step}
        count++;
        return { observation: 'count ' + count, reward: 0.5, terminated: count >= 10, truncated: false, info: { count } };
      },
    };
  },
});
`;

/** Starts an environment process with a short timeout and collects its notices. */
export async function startProcess(entry: string, options: Partial<EnvironmentProcessOptions> = {}) {
  const notices: EnvironmentNotice[] = [];
  const onNotice = (notice: EnvironmentNotice) => notices.push(notice);
  const running = await EnvironmentProcess.start({
    entry,
    variables: process.env,
    stepTimeoutMs: 400,
    onNotice,
    ...options,
  });
  return { running, notices };
}
