// Sending runs to MLflow: keys, addresses, what a server receives, and servers that refuse, hang or come late. The real
// server is tested in test/mlflow.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import fc from 'fast-check';
import { manifestSchema } from '../../../../extension/run-data/run-manifest';
import { LiveMlflow, type LivePace } from '../../../../extension/trainer/tracking/live-mlflow';
import { mlflowAddress, MlflowClient } from '../../../../extension/trainer/tracking/mlflow-client';
import { mlflowKey, mlflowState, openMlflowRun, sendMetrics } from '../../../../extension/trainer/tracking/mlflow-run';
import { storedFiles } from '../../../e2e/fixtures/stored-run.mjs';
import { MlflowPeer } from '../../../support/mlflow-peer';

const manifest = manifestSchema.parse(JSON.parse(storedFiles('lake-run')['manifest.json']));
const pace: LivePace = { queue: 5, retryMs: 5, longestMs: 20, closeMs: 2000 };
let peer: MlflowPeer;
let url: string;

beforeEach(async () => {
  peer = new MlflowPeer();
  url = await peer.open();
});
afterEach(() => peer.close());

const line = (step: number) => ({
  step,
  timestamp: 1000 + step,
  values: { 'train/lake/pass@8': step / 10, bad: Infinity },
});
const sentSteps = (): number[] => peer.metrics.map(({ step }) => step);

describe('keys', () => {
  it('contain only characters that MLflow accepts', () => {
    expect(mlflowKey('val-env/lake/pass@8')).toBe('val-env/lake/pass_at_8');
    fc.assert(
      fc.property(fc.string(), key => {
        const made = mlflowKey(key);
        expect(made).toMatch(/^[\w\-. /]*$/);
        expect(made).not.toMatch(/\/\/|^\/|\/$|(^|\/)\.\.?(\/|$)/);
        expect(made.length).toBeLessThanOrEqual(250);
      }),
    );
  });
});

describe('addresses', () => {
  it('are http(s) URLs without credentials; a path is kept', () => {
    expect(mlflowAddress('https://host:5000/mlflow/', '--mlflow')).toBe('https://host:5000/mlflow');
    expect(() => mlflowAddress('file:///tmp', '--mlflow')).toThrow('--mlflow is "file:///tmp": give the URL');
    expect(() => mlflowAddress('http://a:secret@host', 'x')).toThrow(/^x is a URL with a password: (?!.*secret)/);
  });
});

it('credentials of MLflow’s variables are sent', async () => {
  const headers: (string | null)[] = [];
  vi.stubGlobal('fetch', (_: string, init: RequestInit) => {
    headers.push(new Headers(init.headers).get('authorization'));
    return Promise.resolve(new Response('{"experiment":{"experiment_id":"1"}}'));
  });
  await new MlflowClient(url, { MLFLOW_TRACKING_TOKEN: 'token-1' }).experiment('x');
  await new MlflowClient(url, { MLFLOW_TRACKING_USERNAME: 'a', MLFLOW_TRACKING_PASSWORD: 'b-password' }).experiment(
    'x',
  );
  vi.unstubAllGlobals();
  expect(headers).toEqual(['Bearer token-1', `Basic ${Buffer.from('a:b-password').toString('base64')}`]);
});

it('a run is created once with its configuration, and found again by its tag', async () => {
  const client = new MlflowClient(url, {});
  const first = await openMlflowRun(client, manifest, 'name');
  expect(first.sentStep).toBe(-1);
  expect(peer.tags.get('ragen.run')).toBe(manifest.id);
  const lr = peer.params.find(({ key }) => key === 'actor_rollout_ref.actor.optim.lr');
  expect(lr?.value).toBe('0.0004');
  await sendMetrics(client, first.run.id, [line(1), line(2)]);
  expect(peer.metrics.map(({ key, value, step }) => [key, value, step])).toEqual([
    ['train/lake/pass_at_8', 0.1, 1],
    ['train/lake/pass_at_8', 0.2, 2],
  ]);
  expect((await openMlflowRun(client, manifest, 'name')).sentStep).toBe(2);
  expect(peer.asked.filter(path => path.endsWith('runs/create'))).toHaveLength(1);
});

it('a request on a connection that the server has closed is repeated once', async () => {
  const client = new MlflowClient(url, {});
  peer.closing = 1;
  expect(await client.experiment('x')).toBe('7');
  peer.closing = 2;
  await expect(client.experiment('x')).rejects.toThrow(/does not answer/);
});

it('artefacts go through the server’s proxy; a server without one refuses them', async () => {
  const client = new MlflowClient(url, {});
  const run = { id: 'r1', artifactUri: 'mlflow-artifacts:/0/r1/artifacts', tags: {} };
  await client.putArtifact(run, 'report.html', '<p>');
  expect([...peer.artifacts]).toEqual([['0/r1/artifacts/report.html', '<p>']]);
  await expect(client.putArtifact({ ...run, artifactUri: 's3://bucket/x' }, 'a', '')).rejects.toThrow('no proxy');
});

describe('a live run', () => {
  const reports: string[] = [];
  const live = (changed: Partial<LivePace> = {}, limitMs = 500) =>
    new LiveMlflow(new MlflowClient(url, {}, limitMs), manifest, sentence => reports.push(sentence), {
      ...pace,
      ...changed,
    });
  beforeEach(() => void reports.splice(0));

  it('is sent step by step and ends with its state', async () => {
    const sender = live();
    sender.push(line(1));
    await vi.waitFor(() => expect(sentSteps()).toEqual([1]));
    sender.push(line(2));
    await sender.close('finished');
    expect(sentSteps()).toEqual([1, 2]);
    expect(peer.states).toEqual(['FINISHED']);
    expect(reports).toEqual([]);
  });

  it('waits for a server that is unavailable, reports it once, and loses nothing', async () => {
    peer.mode = 'unavailable';
    const sender = live();
    for (const step of [1, 2, 3]) sender.push(line(step));
    await vi.waitFor(() => expect(peer.asked.length).toBeGreaterThan(3));
    peer.mode = 'answer';
    await vi.waitFor(() => expect(sentSteps()).toEqual([1, 2, 3]));
    await sender.close('stopped');
    expect(peer.states).toEqual(['KILLED']);
    expect(reports).toHaveLength(1);
    expect(reports[0]).toMatch(/status 503 .*: the run continues and tries again$/);
  });

  it('keeps at most as many lines as its queue holds, and names the loss at the end', async () => {
    peer.mode = 'unavailable';
    const sender = live();
    for (let step = 1; step <= 12; step++) sender.push(line(step));
    await sender.close('finished');
    expect(reports).toHaveLength(2);
    expect(reports[1]).toContain(`12 lines of metrics were not sent`);
    expect(reports[1]).toContain(`ragen export --run ${manifest.id} --mlflow ${url}`);
  });

  it('stops sending to a server that refuses it', async () => {
    peer.mode = 'forbidden';
    const sender = live();
    sender.push(line(1));
    await vi.waitFor(() => expect(reports).toHaveLength(1));
    const asked = peer.asked.length;
    sender.push(line(2));
    await sender.close('finished');
    expect(peer.asked).toHaveLength(asked);
    expect(reports[0]).toContain('no metrics are sent');
    expect(reports[1]).toContain('2 lines');
  });

  it('does not hold up the end of the run when the server hangs', async () => {
    peer.mode = 'hang';
    const sender = live({ closeMs: 50 }, 60_000);
    sender.push(line(1));
    await sender.close('finished');
    expect(reports).toEqual([expect.stringContaining('1 lines of metrics were not sent')]);
  });

  it('continues the MLflow run of an earlier session', async () => {
    await live().close('stopped');
    const first = live();
    first.push(line(1));
    await first.close('stopped');
    const second = live();
    second.push(line(2));
    await second.close('finished');
    expect(peer.states).toEqual(['KILLED', 'RUNNING', 'FINISHED']);
    expect(peer.asked.filter(path => path.endsWith('runs/create'))).toHaveLength(1);
  });
});

it('states of runs are MLflow’s states', () => {
  expect((['finished', 'failed', 'stopped', 'running', 'paused'] as const).map(mlflowState)).toEqual([
    ...['FINISHED', 'FAILED', 'KILLED', 'RUNNING', 'RUNNING'],
  ]);
});
