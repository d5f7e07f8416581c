// A real Ray head for tests, on free ports of 127.0.0.1 with two CPUs. `ray stop` is never used, because it ends every
// Ray process of the machine by name: only the processes that this one started are ended.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { expect, vi } from 'vitest';
import { RayJobs } from '../../extension/ray/ray-jobs';
import { childrenOf, isAlive } from '../support/terminal';

/** The program `ray`, as installed by install.mjs. */
export const ray = join(process.env.RAGEN_RAY_FOLDER ?? resolve(import.meta.dirname, '../../.ray'), 'bin', 'ray');

/** Returns distinct free ports. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<Server>(resolve => {
          const server = createServer();
          server.listen(0, '127.0.0.1', () => resolve(server));
        }),
    ),
  );
  const ports = servers.map(server => (server.address() as AddressInfo).port);
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))));
  return ports;
}

export class RealRay {
  /** Short, because Ray creates sockets in it. */
  private readonly folder = mkdtempSync('/tmp/ragen-ray-');
  private process: ChildProcess | undefined;
  private printed = '';
  url = '';

  /** Starts the head; resolves when its dashboard answers. */
  async start(): Promise<void> {
    const names = [
      'port',
      'dashboard-port',
      'dashboard-agent-listen-port',
      'dashboard-agent-grpc-port',
      'node-manager-port',
      'object-manager-port',
      'runtime-env-agent-port',
      'metrics-export-port',
      'ray-client-server-port',
    ];
    const ports = await freePorts(names.length);
    this.url = `http://127.0.0.1:${ports[1]}`;
    const args = [
      ...['start', '--head', '--block', '--disable-usage-stats', '--node-ip-address=127.0.0.1'],
      ...['--num-cpus=2', '--num-gpus=0', '--object-store-memory=100000000', '--dashboard-host=127.0.0.1'],
      ...[`--temp-dir=${this.folder}`, ...names.map((name, i) => `--${name}=${ports[i]}`)],
    ];
    const { RAY_ADDRESS: _, ...env } = process.env;
    const child = spawn(ray, args, {
      env: {
        ...env,
        PATH: `${dirname(process.execPath)}:${dirname(ray)}:${process.env.PATH}`,
        RAY_memory_monitor_refresh_ms: '0',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.process = child;
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (this.printed += text));
    const jobs = new RayJobs({ url: this.url, headers: {} });
    let ended = false;
    child.once('exit', () => (ended = true));
    const answer = () => (ended ? 'ended' : jobs.version().catch(() => null));
    await vi.waitUntil(answer, { timeout: 240_000, interval: 500 });
    expect(ended, `ray start ended:\n${this.printed}`).toBe(false);
  }

  /** Ends the processes of this head and removes its files. */
  async stop(): Promise<void> {
    const pid = this.process?.pid;
    if (pid !== undefined) {
      const all = [pid];
      for (const parent of all) all.push(...childrenOf(parent));
      for (const each of all.reverse()) {
        try {
          process.kill(each, 'SIGKILL');
        } catch {
          // The process has ended.
        }
      }
      await vi.waitUntil(() => all.every(each => each === pid || !isAlive(each)), { timeout: 30_000 });
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
