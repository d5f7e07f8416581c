// A server with a real environment process, created as by `ragen env serve`, for protocol tests.
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { EnvironmentSpec } from '../../../../extension/protocol/environment-link';
import {
  startEnvironmentServer,
  type EnvironmentServer,
  type EnvironmentServerOptions,
} from '../../../../extension/environments/server/http-server';
import type { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { buildEntry, root, startProcess } from '../../../support/bundles';

const registry = JSON.parse(readFileSync(join(root, 'envs/registry.json'), 'utf8')) as Record<string, string>;

/** A built-in environment to load or to serve. */
export const builtIn = (env_type: string, config: Record<string, unknown> = {}, tag = env_type): EnvironmentSpec => ({
  tag,
  env_type,
  source: join(root, 'envs', registry[env_type]),
  config,
});

export interface Serving {
  /** The environment process of the servers. */
  pool: EnvironmentProcess;
  /** Starts another environment process, as in a run whose episodes are played on a server. */
  client(): Promise<EnvironmentProcess>;
  /** Starts another server on the same process; `stop` ends all servers. */
  serve(
    offered: EnvironmentSpec[],
    options?: Partial<EnvironmentServerOptions>,
  ): Promise<EnvironmentServer & { errors: string[] }>;
  stop(): Promise<void>;
}

export async function startServing(): Promise<Serving> {
  const entry = await buildEntry();
  const { running: pool } = await startProcess(entry, { stepTimeoutMs: 20_000 });
  const servers: EnvironmentServer[] = [];
  const clients: EnvironmentProcess[] = [];
  return {
    pool,
    async client() {
      const { running } = await startProcess(entry, { stepTimeoutMs: 20_000 });
      clients.push(running);
      return running;
    },
    async serve(offered, options = {}) {
      const errors: string[] = [];
      const server = await startEnvironmentServer({
        pool,
        offered,
        host: '127.0.0.1',
        port: 0,
        apiKey: undefined,
        allowConfig: false,
        maxSessions: 8,
        sessionTimeoutMs: 60_000,
        maxBodyBytes: 2 ** 20,
        onError: line => errors.push(line),
        ...options,
      });
      servers.push(server);
      return Object.assign(server, { errors });
    },
    async stop() {
      await Promise.all(servers.map(server => server.close()));
      await Promise.all([pool, ...clients].map(each => each.stop()));
      rmSync(dirname(entry), { recursive: true, force: true });
    },
  };
}

/** Sends a JSON request and returns the response. */
export async function request(
  url: string,
  path: string,
  body?: unknown,
  init: RequestInit = {},
): Promise<{ status: number; json: Record<string, unknown>; headers: Headers }> {
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    body: body === undefined ? undefined : JSON.stringify(body),
    ...init,
    headers: { 'content-type': 'application/json', ...init.headers },
  });
  return {
    status: response.status,
    json: (await response.json()) as Record<string, unknown>,
    headers: response.headers,
  };
}
