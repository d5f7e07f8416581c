// Requests to an MLflow tracking server (REST API 2.0). Credentials come from the environment variables of MLflow's own
// clients and are sent only to the given server. Every request has a time limit. Artefacts are sent through the server's
// proxy (`mlflow server` serves it by default); a server without it refuses them.
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import { secrets } from '../../node/secrets';

/** A refused or failed request. `isTransient` tells whether a later attempt may succeed. */
export class MlflowError extends Error {
  constructor(
    message: string,
    readonly isTransient: boolean,
  ) {
    super(message);
  }
}

export interface MlflowMetric {
  key: string;
  value: number;
  /** Milliseconds since 1970. */
  timestamp: number;
  step: number;
}

export interface MlflowEntry {
  key: string;
  value: string;
}

export interface MlflowRun {
  id: string;
  /** Where the server stores artefacts of the run. */
  artifactUri: string;
  tags: Readonly<Record<string, string>>;
}

/** Limits of one `log-batch` request, which the server enforces. */
export const batchLimits = { metrics: 1000, entries: 100 };

/** Milliseconds after which a request fails. */
const timeoutMs = 20_000;

const runSchema = z.object({
  info: z.object({ run_id: z.string(), artifact_uri: z.string() }),
  data: z.object({ tags: z.array(z.object({ key: z.string(), value: z.string() })).optional() }).optional(),
});

/** Returns the canonical address of a server. @throws UserError that begins with `place` if it is not a plain http(s) URL */
export function mlflowAddress(text: string, place: string): string {
  if (URL.canParse(text)) {
    const { protocol, username, password, search, hash, origin, pathname } = new URL(text);
    if (/^https?:$/.test(protocol) && username + password + search + hash === '')
      return `${origin}${pathname.replace(/\/+$/, '')}`;
  }
  const shown = URL.canParse(text) && new URL(text).password !== '' ? 'a URL with a password' : JSON.stringify(text);
  throw new UserError(
    `${place} is ${shown}: give the URL of an MLflow tracking server, such as http://127.0.0.1:5000; credentials belong into MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD`,
  );
}

export class MlflowClient {
  private readonly headers: Record<string, string> = {};

  /** `url` is an address as `mlflowAddress` returns it; `env` contains the credentials. */
  constructor(
    readonly url: string,
    env: NodeJS.ProcessEnv = process.env,
    private readonly limitMs = timeoutMs,
  ) {
    const { MLFLOW_TRACKING_TOKEN: token, MLFLOW_TRACKING_USERNAME: user, MLFLOW_TRACKING_PASSWORD: password } = env;
    if (token) secrets.include('MLFLOW_TRACKING_TOKEN', token);
    if (password) secrets.include('MLFLOW_TRACKING_PASSWORD', password);
    if (token) this.headers.authorization = `Bearer ${token}`;
    else if (user && password)
      this.headers.authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  }

  /** Returns the id of the experiment with this name; creates it if it does not exist. */
  async experiment(name: string): Promise<string> {
    const schema = z.object({ experiment: z.object({ experiment_id: z.string() }) });
    const found = await this.call(
      'GET',
      `experiments/get-by-name?experiment_name=${encodeURIComponent(name)}`,
      null,
      schema,
    ).catch((error: MlflowError) => {
      if (/RESOURCE_DOES_NOT_EXIST/.test(error.message)) return null;
      throw error;
    });
    if (found) return found.experiment.experiment_id;
    const made = await this.call('POST', 'experiments/create', { name }, z.object({ experiment_id: z.string() }));
    return made.experiment_id;
  }

  /** Returns the newest run of an experiment with this tag; null if there is none. */
  async findRun(experiment: string, { key, value }: MlflowEntry): Promise<MlflowRun | null> {
    const filter = `tags.\`${key}\` = '${value.replace(/['\\]/g, '')}'`;
    const { runs = [] } = await this.call(
      'POST',
      'runs/search',
      { experiment_ids: [experiment], filter, max_results: 1, order_by: ['attributes.start_time DESC'] },
      z.object({ runs: z.array(runSchema).optional() }),
    );
    return runs.length === 0 ? null : runOf(runs[0]);
  }

  /** Creates a run; `start` is in milliseconds since 1970. */
  async createRun(experiment: string, name: string, start: number, tags: readonly MlflowEntry[]): Promise<MlflowRun> {
    const body = { experiment_id: experiment, run_name: name, start_time: start, tags };
    return runOf((await this.call('POST', 'runs/create', body, z.object({ run: runSchema }))).run);
  }

  /** Logs at most `batchLimits` metrics, parameters and tags. */
  async logBatch(
    run_id: string,
    batch: { metrics?: readonly MlflowMetric[]; params?: readonly MlflowEntry[]; tags?: readonly MlflowEntry[] },
  ): Promise<void> {
    await this.call('POST', 'runs/log-batch', { run_id, ...batch }, z.unknown());
  }

  /** Sets the state of a run; `end` is in milliseconds since 1970, null for a run that continues. */
  async updateRun(
    run_id: string,
    status: 'RUNNING' | 'FINISHED' | 'FAILED' | 'KILLED',
    end: number | null,
  ): Promise<void> {
    await this.call('POST', 'runs/update', { run_id, status, ...(end !== null && { end_time: end }) }, z.unknown());
  }

  /** Stores a file as an artefact of a run. @throws MlflowError if the server has no artefact proxy */
  async putArtifact({ artifactUri }: MlflowRun, name: string, content: string | Uint8Array): Promise<void> {
    const [, path] = /^mlflow-artifacts:\/+(?:[^/]+:\d+\/)?(.*)$/.exec(artifactUri) ?? [];
    if (path === undefined)
      throw new MlflowError(`the server stores artefacts at ${artifactUri} and serves no proxy for them`, false);
    const parts = `${path}/${name}`.split('/').map(encodeURIComponent).join('/');
    await this.send('PUT', `${this.url}/api/2.0/mlflow-artifacts/artifacts/${parts}`, Buffer.from(content));
  }

  private async call<T>(method: string, path: string, body: unknown, schema: z.ZodType<T>): Promise<T> {
    const text = await this.send(
      method,
      `${this.url}/api/2.0/mlflow/${path}`,
      body === null ? undefined : JSON.stringify(body),
    );
    try {
      return schema.parse(JSON.parse(text));
    } catch {
      throw new MlflowError(`${this.url} answers ${path.split('?')[0]} like no MLflow server`, false);
    }
  }

  /**
   * Sends a request and returns the body of the answer. A request on a connection that the server has closed, as servers do
   * between two steps, is repeated once on a new connection.
   */
  private async send(
    method: string,
    url: string,
    body: string | Uint8Array | undefined,
    isRepeated = false,
  ): Promise<string> {
    const type = typeof body === 'string' ? 'application/json' : 'application/octet-stream';
    let response: Response;
    let text: string;
    try {
      response = await fetch(url, {
        ...{ method, redirect: 'error', signal: AbortSignal.timeout(this.limitMs) },
        headers: { ...this.headers, ...(body !== undefined && { 'content-type': type }) },
        ...(body !== undefined && { body }),
      });
      text = await response.text();
    } catch (error) {
      const { message, cause } = error as Error;
      const reason = cause instanceof Error ? cause.message : message;
      const isClosed = cause instanceof Error && /closed|ECONNRESET|EPIPE/.test(`${cause.message} ${codeOf(cause)}`);
      if (isClosed && !isRepeated) return this.send(method, url, body, true);
      throw new MlflowError(`${this.url} does not answer (${reason})`, true);
    }
    if (response.ok) return text;
    const isTransient = response.status === 408 || response.status === 429 || response.status >= 500;
    throw new MlflowError(
      `${this.url} refuses ${new URL(url).pathname.split('/').at(-1)} with status ${response.status} (${text.slice(0, 300).replace(/\s+/g, ' ')})`,
      isTransient,
    );
  }
}

const codeOf = (error: NodeJS.ErrnoException): string => error.code ?? '';

const runOf = ({ info, data }: z.infer<typeof runSchema>): MlflowRun => ({
  id: info.run_id,
  artifactUri: info.artifact_uri,
  tags: Object.fromEntries((data?.tags ?? []).map(({ key, value }) => [key, value])),
});
