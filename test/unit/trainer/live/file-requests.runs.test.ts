// Control of a trainer on another machine through the files of its run folder: with real trainers whose lease names
// another machine and an unreachable socket, and with forged, broken and late requests.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { askByFile, requestHmac } from '../../../../extension/node/run-requests';
import { change, checkpoint, coverEnvironments, pause, stop } from '../../../../extension/protocol/trainer-link';
import type { Lease } from '../../../../extension/run-data/lease-file';
import type { RunState, RunStatus } from '../../../../extension/run-data/run-status-file';
import { FileRequests } from '../../../../extension/trainer/live/file-requests';
import { RunControl } from '../../../../extension/trainer/run/run-control';
import {
  document,
  isAlive,
  killAll,
  leaseOf,
  ragen,
  readRun,
  startDetached,
  statusOf,
  until,
  untilStep,
} from '../../../support/terminal';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

describe('requests', () => {
  const token = 'a-token-of-a-lease';
  const lease: Lease = { pid: 1, started: '', endpoint: '/none', token, host: 'far' };
  const status = { state: 'running', step: 3 } as RunStatus;
  let folder: string;
  let states: RunState[];
  let control: RunControl;
  let requests: FileRequests;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ragen-requests-'));
    states = [];
    control = new RunControl(state => states.push(state));
    requests = new FileRequests(folder, {
      id: 'r',
      token,
      control,
      status: () => ({ ...status, state: control.state }),
    });
  });
  afterEach(async () => {
    control.end();
    await requests.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const files = () => readdirSync(join(folder, 'requests'));

  test('get the replies of the socket, and leave no files', async () => {
    expect(await askByFile(folder, lease, pause, null, 10_000)).toMatchObject({ state: 'paused', step: 3 });
    expect(states).toEqual(['paused']);
    expect(files()).toEqual([]);
  });

  test('are answered when their work is done, at the latest when the run ends', async () => {
    const asked = askByFile(folder, lease, checkpoint, null, 10_000);
    await until('the request arrives', () => control.checkpointRequested);
    control.checkpointed('checkpoints/step-000004');
    expect(await asked).toEqual({ folder: 'checkpoints/step-000004' });
    // Expected at once, because the request may fail while `close` is awaited.
    const late = expect(askByFile(folder, lease, checkpoint, null, 10_000)).rejects.toThrow(
      'the run ended before the requested checkpoint was written',
    );
    await until('the request arrives', () => control.checkpointRequested);
    control.end();
    await requests.close();
    await late;
  });

  test('report the trainer’s refusal in its words', async () => {
    await expect(askByFile(folder, lease, change, { values: { lr: 1 } }, 10_000)).rejects.toThrow(
      'the run is not training yet',
    );
    await expect(askByFile(folder, lease, change, { values: 3 } as never, 10_000)).rejects.toThrow(
      'the request is invalid',
    );
    await expect(askByFile(folder, lease, coverEnvironments, { on: true }, 10_000)).rejects.toThrow(
      /^run r: ragen\/coverEnvironments needs a connection to the trainer/,
    );
  });

  test('with another token, or with changed content, have no effect and are removed', async () => {
    await expect(askByFile(folder, { ...lease, token: 'guessed' }, stop, null, 2500)).rejects.toThrow(
      /the trainer on far did not reply within 2.5 s/,
    );
    const body = JSON.stringify({ method: stop.method, params: null });
    const id = '0123456789abcdef';
    const forgeries = [
      { schema: 1, body, hmac: requestHmac(token, 'fedcba9876543210', body) }, // of another id
      { schema: 1, body, hmac: requestHmac(token, id, body.replace('stop', 'pause')) }, // of another request
      { schema: 1, body },
      'text',
    ];
    for (const forgery of forgeries) {
      writeFileSync(join(folder, 'requests', `${id}.json`), JSON.stringify(forgery));
      await requests.read();
      await until('the file is removed', () => files().length === 0);
    }
    expect(states).toEqual([]);
  });

  test('never contain the token', async () => {
    await requests.close(); // nobody removes the request
    const asked = askByFile(folder, lease, pause, null, 500).catch(() => undefined);
    const name = await until(
      'the request is written',
      () => existsSync(join(folder, 'requests')) && files().find(f => /^\w+\.json$/.test(f)),
    );
    expect(readFileSync(join(folder, 'requests', name), 'utf8')).not.toContain(token);
    await asked;
  });

  test('are not written through a link', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'ragen-elsewhere-'));
    symlinkSync(elsewhere, join(folder, 'requests'));
    await expect(askByFile(folder, lease, pause, null, 10_000)).rejects.toThrow('is not a folder');
    expect(readdirSync(elsewhere)).toEqual([]);
    rmSync(elsewhere, { recursive: true });
  });

  test('a folder in the place of a request harms nothing', async () => {
    mkdirSync(join(folder, 'requests', '0123456789abcdef.json'), { recursive: true });
    await requests.read();
    expect(await askByFile(folder, lease, pause, null, 10_000)).toMatchObject({ state: 'paused' });
  });
});

describe('a run of another machine', () => {
  let workspace: Workspace;
  beforeAll(() => (workspace = makeWorkspace()));
  afterAll(async () => {
    await killAll(workspace.folder);
    workspace.remove();
  });

  /** Makes the lease of a run name another machine, whose socket this one cannot reach. */
  function moveAway(run: string): void {
    const lease = leaseOf(run)!;
    writeFileSync(join(run, 'lease'), JSON.stringify({ ...lease, host: 'far', boot: 'of-far', endpoint: '/none/s' }));
  }

  test('is paused, changed, resumed and stopped by the same commands', { timeout: 120_000 }, async () => {
    const run = await startDetached(workspace.folder, ['trainer.total_training_steps=5000', 'trainer.test_freq=-1']);
    await untilStep(run, 1);
    const { pid } = leaseOf(run)!;
    moveAway(run);
    const id = run.split('/').at(-1)!;
    const on = async (...args: string[]) => {
      const { code, answer, stderr } = await document(workspace.folder, args);
      expect(code, stderr).toBe(0);
      return answer;
    };
    expect(await on('pause', id)).toMatchObject({ state: 'paused' });
    await until('the run pauses', () => statusOf(run)?.state === 'paused');
    const lr = 'actor_rollout_ref.actor.optim.lr';
    expect(await on('set', id, `${lr}=0.003`)).toMatchObject({ changes: [{ key: lr, to: 0.003 }] });
    const refused = await ragen(workspace.folder, ['set', id, `${lr}=-1`]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(lr);
    expect(await on('resume', id, '--detach')).toMatchObject({ run: id });
    const { step } = statusOf(run)!;
    await untilStep(run, step + 1);
    expect(await on('stop', id)).toMatchObject({ state: 'stopped' });
    expect(leaseOf(run)).toBeNull();
    await until('the trainer is gone', () => !isAlive(pid));
    const { checkpoints, events } = readRun(run);
    expect(checkpoints).not.toEqual([]);
    expect(events.map(({ kind }) => kind)).toContain('setting');
    expect(readdirSync(join(run, 'requests'))).toEqual([]);
  });
});
