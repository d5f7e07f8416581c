// A real MLflow tracking server receives stored runs: after the fact by `ragen export --mlflow`, and live.
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { runFiles } from '../../extension/run-data/run-file-names';
import { manifestSchema } from '../../extension/run-data/run-manifest';
import { metricsLineSchema } from '../../extension/run-data/step-lines';
import { LiveMlflow } from '../../extension/trainer/tracking/live-mlflow';
import { MlflowClient } from '../../extension/trainer/tracking/mlflow-client';
import { restoreRun } from '../e2e/fixtures/stored-run.mjs';
import { attachOnce, samples } from '../support/attached';
import { document } from '../support/terminal';

const environment = resolve(import.meta.dirname, '../../.mlflow');
const installed = existsSync(join(environment, 'installed'));
if (!installed && process.env.RAGEN_REQUIRE_MLFLOW === '1')
  throw new Error('RAGEN_REQUIRE_MLFLOW is set, but there is no server: run node test/mlflow/install.mjs');

let workspace: string;
let url: string;
let server: ChildProcess;
let said = '';

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>(done => probe.listen(0, '127.0.0.1', done));
  const { port } = probe.address() as AddressInfo;
  await new Promise(done => probe.close(done));
  return port;
}

async function openServer(): Promise<void> {
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const args = ['server', '--host', '127.0.0.1', '--port', String(port), '--workers', '1'];
  const stores = [
    '--backend-store-uri',
    `sqlite:///${workspace}/mlflow.db`,
    '--artifacts-destination',
    `${workspace}/artifacts`,
  ];
  server = spawn(join(environment, 'bin', 'mlflow'), [...args, ...stores], {
    cwd: workspace,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, MLFLOW_DISABLE_TELEMETRY: 'true', MLFLOW_SERVER_ENABLE_JOB_EXECUTION: 'false' },
  });
  for (const stream of [server.stdout!, server.stderr!]) stream.on('data', (part: Buffer) => (said += part.toString()));
  const answers = (): Promise<boolean> =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await vi.waitFor(async () => expect(await answers(), said).toBe(true), { timeout: 240_000, interval: 300 });
}

beforeAll(async () => {
  workspace = mkdtempSync(join(tmpdir(), 'ragen-mlflow-'));
  if (installed) await openServer();
});
afterAll(() => {
  if (server?.pid !== undefined) process.kill(-server.pid, 'SIGKILL');
  rmSync(workspace, { recursive: true, force: true });
});

interface SearchedRun {
  info: { run_id: string; run_name: string; status: string };
  data: {
    params: { key: string; value: string }[];
    tags: { key: string; value: string }[];
    metrics: { key: string; value: number; step: number }[];
  };
}

async function call<T>(path: string, body?: unknown): Promise<T> {
  const response = await fetch(`${url}/api/2.0/${path}`, {
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    headers: { 'content-type': 'application/json' },
  });
  expect(response.status, path).toBe(200);
  return (await response.json()) as T;
}

/** Returns the values of a metric as the server stores them. */
async function history(run: string, key: string): Promise<[step: number, value: number][]> {
  const { metrics } = await call<{ metrics: { step: number; value: number }[] }>(
    `mlflow/metrics/get-history?run_id=${run}&metric_key=${encodeURIComponent(key)}`,
  );
  return metrics.map(({ step, value }): [number, number] => [Number(step), value]).sort((a, b) => a[0] - b[0]);
}

describe.skipIf(!installed)('a real server', () => {
  test('receives a run with parameters, metrics and artefacts; a repeated export sends nothing', async () => {
    const folder = restoreRun(workspace, 'lake-run');
    const args = ['export', '--run', basename(folder), '--mlflow', url];
    const { answer } = await document<{ run_id: string; lines: number; note: string }>(workspace, args);
    const metrics = readFileSync(join(folder, runFiles.metrics), 'utf8')
      .trimEnd()
      .split('\n')
      .map(line => metricsLineSchema.parse(JSON.parse(line)));
    expect(answer).toMatchObject({ lines: metrics.length, note: '' });
    const key = 'val-env/QuickFrozenLake/success';
    const logged = metrics.filter(line => key in line).map(line => [line.step, line[key]]);
    expect(await history(answer.run_id, key)).toEqual(logged);
    const { run } = await call<{ run: SearchedRun }>(`mlflow/runs/get?run_id=${answer.run_id}`);
    expect(run.info.status).toBe('FINISHED');
    expect(run.data.params.find(param => param.key === 'actor_rollout_ref.actor.optim.lr')?.value).toBe('0.0004');
    const { files } = await call<{ files: { path: string }[] }>(`mlflow/artifacts/list?run_id=${answer.run_id}`);
    expect(files.map(({ path }) => path).sort()).toEqual(['events.jsonl', 'manifest.json', 'report.html']);
    const again = await document<{ run_id: string; lines: number }>(workspace, args);
    expect(again.answer).toMatchObject({ run_id: answer.run_id, lines: 0 });
  });

  test('receives a run of another trainer, with its parameters, the metrics of its files and derived ones', async () => {
    const { folder, metrics } = await attachOnce(workspace, join(samples, 'verl'));
    const args = ['export', '--run', folder.id, '--mlflow', url];
    const { answer } = await document<{ run_id: string; lines: number; note: string }>(workspace, args);
    expect(answer).toMatchObject({ lines: metrics.length, note: '' });
    const logged = (key: string) => metrics.filter(line => key in line).map(line => [line.step, line[key]]);
    for (const key of ['critic/score/mean', 'actor/entropy', 'rollout/zero_variance_ratio']) {
      expect(logged(key).length).toBeGreaterThan(1);
      expect(await history(answer.run_id, key)).toEqual(logged(key));
    }
    const { run } = await call<{ run: SearchedRun }>(`mlflow/runs/get?run_id=${answer.run_id}`);
    expect(run.info).toMatchObject({ status: 'FINISHED', run_name: 'frozenlake_grpo' });
    expect(run.data.params.find(({ key }) => key === 'algorithm.adv_estimator')?.value).toBe('grpo');
    const tags = Object.fromEntries(run.data.tags.map(({ key, value }) => [key, value]));
    expect(tags).toMatchObject({ 'ragen.run': folder.id, 'ragen.trainer': 'verl' });
    expect(tags).not.toHaveProperty('ragen.model');
    const { files } = await call<{ files: { path: string }[] }>(`mlflow/artifacts/list?run_id=${answer.run_id}`);
    expect(files.map(({ path }) => path).sort()).toEqual(['events.jsonl', 'manifest.json', 'report.html']);
    const report = await fetch(
      `${url}/get-artifact?${new URLSearchParams({ run_uuid: answer.run_id, path: 'report.html' }).toString()}`,
    );
    expect(await report.text()).toContain('frozenlake_grpo');
    expect((await document<{ lines: number }>(workspace, args)).answer.lines).toBe(0);
  });

  test('receives a live run step by step', async () => {
    const folder = restoreRun(workspace, 'collapsing-run');
    const manifest = manifestSchema.parse(JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')));
    const reports: string[] = [];
    const sender = new LiveMlflow(new MlflowClient(url), manifest, sentence => reports.push(sentence));
    for (const step of [1, 2, 3])
      sender.push({ step, timestamp: Date.now(), values: { 'train/lake/pass@8': step / 4 } });
    await sender.close('finished');
    expect(reports).toEqual([]);
    const { experiment } = await call<{ experiment: { experiment_id: string } }>(
      'mlflow/experiments/get-by-name?experiment_name=ragen',
    );
    const { runs } = await call<{ runs: SearchedRun[] }>('mlflow/runs/search', {
      experiment_ids: [experiment.experiment_id],
      filter: `tags."ragen.run" = '${manifest.id}'`,
    });
    expect(runs.map(({ info }) => info.status)).toEqual(['FINISHED']);
    expect(await history(runs[0].info.run_id, 'train/lake/pass_at_8')).toEqual([
      [1, 0.25],
      [2, 0.5],
      [3, 0.75],
    ]);
  });
});
