// A Ray dashboard in this process, over HTTP: the peer that Ray jobs are tested against. It executes entrypoints as
// Ray 2.57 does: by a shell in its own session, one job per free CPU, with SIGTERM and then SIGKILL to the job's
// processes when it is stopped. Answers, status codes and texts are those recorded from Ray 2.57.0. `fault` cuts or
// replaces the answers to chosen requests.
import { spawn, type ChildProcess } from 'node:child_process';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import type { RayJob } from '../../extension/ray/ray-wire';
import { childrenOf } from './terminal';

export type Fault = 'cut before' | 'cut after' | 'silent' | { status: number; text: string };

export interface RayPeerOptions {
  /** Number of CPUs; a job that needs more than are free stays PENDING. */
  cpus?: number;
  /** Token that requests must have. */
  token?: string;
}

const submission = z.strictObject({
  entrypoint: z.string(),
  submission_id: z.string(),
  metadata: z.record(z.string(), z.string()),
  runtime_env: z.strictObject({ env_vars: z.record(z.string(), z.string()).optional() }),
  entrypoint_num_cpus: z.number(),
  entrypoint_num_gpus: z.number(),
  entrypoint_resources: z.record(z.string(), z.number()),
});
export type Submission = z.infer<typeof submission>;

interface Job {
  about: Submission;
  details: RayJob;
  log: string;
  child?: ChildProcess;
  stopping?: NodeJS.Timeout;
  cancelled?: boolean;
}

export class RayPeer {
  readonly requests: { method: string; path: string; headers: IncomingMessage['headers'] }[] = [];
  /** Decides what happens to a request; by default nothing does. */
  fault: (method: string, path: string) => Fault | undefined = () => undefined;
  private readonly jobs = new Map<string, Job>();

  private constructor(
    private readonly server: Server,
    private readonly options: RayPeerOptions,
  ) {}

  static async start(options: RayPeerOptions = {}): Promise<RayPeer> {
    const server = createServer((request, response) => void peer.serve(request, response));
    const peer = new RayPeer(server, options);
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    return peer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** The jobs in the order of their submission. */
  get submitted(): Submission[] {
    return [...this.jobs.values()].map(({ about }) => about);
  }

  statusOf(id: string): RayJob['status'] | undefined {
    return this.jobs.get(id)?.details.status;
  }

  logOf(id: string): string {
    return this.jobs.get(id)?.log ?? '';
  }

  /** Kills the processes of a job, as when its node is lost. */
  killJob(id: string): void {
    signalAll(this.jobs.get(id)?.child?.pid, 'SIGKILL');
  }

  /** Kills all jobs and closes the server. */
  async close(): Promise<void> {
    for (const { child, stopping, details } of this.jobs.values()) {
      clearTimeout(stopping);
      if (details.status === 'RUNNING') signalAll(child?.pid, 'SIGKILL');
    }
    this.server.closeAllConnections();
    await new Promise<void>(resolve => this.server.close(() => resolve()));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = request;
    this.requests.push({ method, path, headers });
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const fault = this.fault(method, path);
    if (fault === 'silent') return;
    if (fault === 'cut before') return void request.socket.destroy();
    const { status, body } =
      typeof fault === 'object'
        ? { status: fault.status, body: fault.text }
        : this.answer(method, path, headers, Buffer.concat(parts).toString('utf8'));
    if (fault === 'cut after') return void request.socket.destroy();
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' });
    response.end(text);
  }

  private answer(
    method: string,
    path: string,
    headers: IncomingMessage['headers'],
    text: string,
  ): { status: number; body: unknown } {
    if (headers['sec-fetch-mode'] !== undefined && method !== 'GET')
      return { status: 405, body: `'${method}' method not allowed for browser traffic.` };
    if (this.options.token !== undefined && headers.authorization !== `Bearer ${this.options.token}`)
      return { status: 401, body: 'Unauthorized: Missing authentication token' };
    if (path === '/api/version')
      return { status: 200, body: { version: '4', ray_version: '2.57.0', ray_commit: 'x', session_name: 'x' } };
    if (path === '/api/jobs/' && method === 'GET')
      return { status: 200, body: [...this.jobs.values()].map(({ details }) => details) };
    if (path === '/api/jobs/' && method === 'POST') return this.submit(submission.parse(JSON.parse(text)));
    const [, id = '', part = ''] = /^\/api\/jobs\/([^/]+)(?:\/(\w+))?$/.exec(path) ?? [];
    const job = this.jobs.get(decodeURIComponent(id));
    if (!job) return { status: 404, body: `Job ${id} does not exist` };
    if (method === 'DELETE') {
      this.jobs.delete(id);
      return { status: 200, body: { deleted: true } };
    }
    if (part === 'logs') return { status: 200, body: { logs: job.log } };
    if (part === 'stop') return { status: 200, body: { stopped: this.stop(job) } };
    return { status: 200, body: job.details };
  }

  private submit(about: Submission): { status: number; body: unknown } {
    const id = about.submission_id;
    if (this.jobs.has(id))
      return {
        status: 500,
        body: `Traceback (most recent call last):\nRuntimeError: Request failed with status code 500: Traceback (most recent call last):\nValueError: Job with submission_id ${id} already exists. Please use a different submission_id.\n.`,
      };
    const details: RayJob & Record<string, unknown> = {
      type: 'SUBMISSION',
      submission_id: id,
      status: 'PENDING',
      message:
        'Job has not started yet. It may be waiting for resources (CPUs, GPUs, memory, custom resources) to become available.',
      driver_exit_code: null,
      start_time: Date.now(),
      end_time: null,
      metadata: about.metadata,
      driver_agent_http_address: null,
    };
    this.jobs.set(id, { about, details, log: '' });
    setImmediate(() => this.startQueued());
    return { status: 200, body: { job_id: id, submission_id: id } };
  }

  private startQueued(): void {
    for (const job of this.jobs.values()) {
      const used = [...this.jobs.values()]
        .filter(({ details }) => details.status === 'RUNNING')
        .reduce((sum, { about }) => sum + about.entrypoint_num_cpus, 0);
      const fits = used + job.about.entrypoint_num_cpus <= (this.options.cpus ?? 2);
      if (job.details.status === 'PENDING' && fits) this.run(job);
    }
  }

  private run(job: Job): void {
    const env = { ...process.env, ...job.about.runtime_env.env_vars, RAY_ADDRESS: '127.0.0.1:6379' };
    const child = spawn('/bin/sh', ['-c', job.about.entrypoint], {
      detached: true,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    job.child = child;
    Object.assign(job.details, {
      status: 'RUNNING',
      message: 'Job is currently running.',
      driver_agent_http_address: 'http://127.0.0.1:52365',
    });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (job.log += text));
    if (job.cancelled) child.once('spawn', () => this.stop(job));
    child.once('close', code => {
      clearTimeout(job.stopping);
      const { details } = job;
      if (job.stopping) Object.assign(details, { status: 'STOPPED', message: 'Job was intentionally stopped.' });
      else if (code === 0) Object.assign(details, { status: 'SUCCEEDED', message: 'Job finished successfully.' });
      else
        Object.assign(details, {
          status: 'FAILED',
          message: `Job entrypoint command failed with exit code ${code}, last available logs (truncated to 20,000 chars):\n${job.log.slice(-20_000)}`,
        });
      Object.assign(details, { driver_exit_code: code, end_time: Date.now() });
      this.startQueued();
    });
  }

  /** Changes the number of CPUs, and starts queued jobs that fit. */
  resize(cpus: number): void {
    this.options.cpus = cpus;
    this.startQueued();
  }

  private stop(job: Job): boolean {
    const { details, child } = job;
    if (details.status === 'PENDING') return (job.cancelled = true); // takes effect when the job begins
    if (details.status !== 'RUNNING') return false;
    signalAll(child?.pid, 'SIGTERM');
    const seconds = Number(job.about.runtime_env.env_vars?.RAY_JOB_STOP_WAIT_TIME_S ?? 3);
    job.stopping ??= setTimeout(() => signalAll(child?.pid, 'SIGKILL'), seconds * 1000);
    return true;
  }
}

/**
 * Sends a signal to a process and its descendants. SIGKILL reaches its process group too, and so a child that the
 * process forked while SIGTERM was on its way.
 */
function signalAll(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  const all = [pid];
  for (const parent of all) all.push(...childrenOf(parent));
  if (signal === 'SIGKILL') all.push(-pid);
  for (const each of all) {
    try {
      process.kill(each, signal);
    } catch {
      // The process has ended.
    }
  }
}
