// Checks that onnxruntime places the nodes of every graph of the engine on the device. The placements are read from
// onnxruntime's log while engine-life.ts runs in a separate process. Only operations on shapes and on host indices may
// run on the host.
import { build } from 'esbuild';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { describeWebgpu, float16 } from './adapter';

interface Placed {
  /** Number of the session and name of its graph. */
  session: number;
  graph: string;
  provider: string;
  op: string;
  node: string;
}

/**
 * Operations that may run on the host, with their maximum number per graph. None of them reads a number computed on the
 * device, because such a read would require a copy to the host.
 */
const onHost: Record<string, number> = {
  // Shapes, sizes, and int64 indices provided by the host: WebGPU has no int64 kernels.
  Shape: Infinity,
  Concat: Infinity,
  Reshape: Infinity,
  Unsqueeze: Infinity,
  Split: Infinity,
  // Lookup of embedding rows by ids from the host, for an embedding that stays in its bfloat16 file: WebGPU does not
  // support bfloat16.
  Gather: 1,
  Cast: 1,
};

/** Graphs that the log must contain, so that the check is complete. */
const graphs = [
  'score',
  'update',
  'imitate',
  'values',
  'critic',
  'generate',
  'sampler',
  'adamw step',
  'gradient norm',
  'sum of gradients',
  'upload',
  'download',
  'cache: take',
  'cache: join axis 0',
  'cache: join axis 2',
];

async function placements(): Promise<Placed[]> {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-placements-'));
  try {
    const outfile = join(folder, 'lives.cjs');
    await build({
      entryPoints: ['test/webgpu/report-lives.ts'],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      target: 'node20',
      loader: { '.proto': 'text', '.wasm': 'binary' },
      external: ['onnxruntime-node'],
      define: { 'import.meta.url': '__url' },
      banner: { js: "const __url = require('node:url').pathToFileURL(__filename).href;" },
      logLevel: 'warning',
    });
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'), 'junction');
    // The log goes to a file: native code loses lines on a full pipe that Node.js has made non-blocking.
    const log = join(folder, 'log.txt');
    const file = openSync(log, 'w');
    const child = spawn(process.execPath, [outfile, ...(float16 ? ['halves'] : [])], {
      stdio: ['ignore', 'ignore', file],
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    closeSync(file);
    const text = readFileSync(log, 'utf8');
    if (code !== 0) throw new Error(`the process ended with code ${code}: ${text.slice(-2000)}`);
    return parsed(text);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Parses the lines `… [V:onnxruntime:<graph>, … VerifyEachNodeIsAssignedToAnEp] …` of onnxruntime's log. */
function parsed(log: string): Placed[] {
  const found: Placed[] = [];
  let provider = '';
  let session = 0;
  for (const [, graph, said] of log.matchAll(/\[V:onnxruntime:(.*), .* VerifyEachNodeIsAssignedToAnEp\] *(.*)/g)) {
    const all = /All nodes placed on \[(\w+)\]/.exec(said);
    const some = /Node\(s\) placed on \[(\w+)\]/.exec(said);
    const node = /^(\w+) \((.*)\)/.exec(said);
    if (said.startsWith('Node placements')) session++;
    else if (all) found.push({ session, graph, provider: all[1], op: 'all', node: 'all' });
    else if (some) provider = some[1];
    else if (node) found.push({ session, graph, provider, op: node[1], node: node[2] });
  }
  return found;
}

describeWebgpu('nodes on WebGPU', () => {
  it('are placed on the device, without copies to the host between them', async () => {
    const all = await placements();
    expect(graphs.filter(graph => !all.some(placed => placed.graph === graph))).toEqual([]);
    const host = all.filter(({ provider }) => provider !== 'WebGpuExecutionProvider');
    const counts = new Map<string, number>();
    for (const { session, graph, op } of host) {
      const key = `${op} in session ${session}, ${graph}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const excess = [...counts].filter(([key, count]) => count > (onHost[key.split(' ')[0]] ?? 0));
    expect(excess).toEqual([]);
    expect(host.length).toBeGreaterThan(0); // otherwise the log was not read
    expect(all.filter(({ op }) => op === 'MemcpyToHost')).toEqual([]);
  });
});
