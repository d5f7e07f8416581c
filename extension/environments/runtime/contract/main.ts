// Entry point of the process that checks an environment against its contract, started by `ragen env check`. The pipe on
// file descriptor 3 carries one request, one report, and pings with their replies. The environment runs in a worker
// thread whose entry is this same file. If a call never returns, the main thread reports the call and terminates the
// thread. The process exits when its parent exits.
import { Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { ContractRequest, FromContract, ToContract } from '../../../protocol/contract-link';
import type { ContractCheck, ContractReport } from '../../../protocol/environment-tools';
import { FrameChannel, channelDescriptor } from '../../../node/frame-channel';
import { gibibytes } from '../../../common/numbers';
import { BuildError, bundleEnvironment, type Bundle } from '../build/build';
import { describe, loadDefinition, parseConfig } from '../worker/definition';
import { endAll } from '../end-all';
import { failureOf } from '../worker/failure';
import { faultOf } from '../threads/fault';
import { sourceLocation } from '../source-location';
import type { Fault, WorkerSetup } from '../threads/worker-messages';
import { checkContract, type ContractResult } from './contract';
import { calls } from './environment-instance';

/**
 * Messages of the worker. After it has loaded the environment, it sends the environment's name and time limit. At the
 * end, it sends the results. If the load fails, it sends a fault instead, and the check ends.
 */
type FromWorker = { name: string; limitMs: number } | { fault: Fault } | { results: ContractResult[] };

/** Additional milliseconds for loading, beyond the time limit of a call. */
const startAllowance = 20_000;
const loads = 'the file builds and loads';

/**
 * Slots of the shared array: `callSlot` contains the current call's index in `calls`, and `countSlot` contains the
 * number of calls so far.
 */
const [callSlot, countSlot] = [0, 1];

if (isMainThread) serve();
else void work(workerData as ContractRequest & { setup: WorkerSetup });

/** Handles the parent's messages until the report has been sent. */
function serve(): void {
  const channel = new FrameChannel(new Socket({ fd: channelDescriptor, readable: true, writable: true }), {
    message: message => {
      const asked = message as ToContract;
      if (asked.method === 'ping') send(asked);
      else void answer(asked.request, report => send({ method: 'report', report }, () => process.exit(0)));
    },
    broken: (why, ended) => {
      if (!ended) process.stderr.write(`Error: ragen ${why}: environment code read data from the channel\n`);
      endAll(ended ? 0 : 1);
    },
  });
  const send = (message: FromContract, sent?: () => void): void => channel.send(message, sent);
}

/** Builds the source, checks the environment in a worker and reports the results. */
async function answer(request: ContractRequest, report: (report: ContractReport) => void): Promise<void> {
  const { tag, source, scored, timeoutMs } = request;
  const send = (checks: ContractCheck[], environment = tag) => report({ environment, source, checks });
  let bundle: Bundle;
  try {
    bundle = await bundleEnvironment(source, scored);
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    const evidence = `environment ${tag} (${error.at}) ${error.message}`;
    return void send([{ name: loads, state: 'failed', evidence, at: error.at }]);
  }
  const shared = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  const setup: WorkerSetup = {
    tag,
    source,
    filename: bundle.filename,
    code: bundle.code,
    config: request.config,
    progress: shared.buffer,
  };
  const worker = new Worker(__filename, { workerData: { ...request, setup }, name: tag, stdout: true, stderr: true });
  worker.stdout.pipe(process.stderr);
  worker.stderr.pipe(process.stderr);

  let name = tag;
  let limitMs: number | undefined;
  const context = { tag, source, bundle, timeoutMs };
  let done = false;
  const during = () => (limitMs === undefined ? loads : 'every call returns');
  const failed = (fault: Fault, requirement: string) => {
    done = true;
    clearInterval(watch);
    const { message, at } = failureOf(fault, context);
    const check: ContractCheck = {
      name: requirement,
      state: 'failed',
      evidence: message,
      ...(at !== undefined && { at }),
    };
    const loaded: ContractCheck = {
      name: loads,
      state: 'passed',
      evidence: `Version ${bundle.version}.`,
    };
    send(requirement === loads ? [check] : [loaded, check], name);
  };
  let [counted, since] = [-1, performance.now()];
  const watch = setInterval(() => {
    const count = Atomics.load(shared, countSlot);
    if (count !== counted) [counted, since] = [count, performance.now()];
    const call = calls[Atomics.load(shared, callSlot)];
    const ended = (kind: Fault['kind'], what: string, remedy: string) => {
      void worker.terminate();
      failed({ kind, what, remedy, action: -1 }, during());
    };
    if (performance.now() - since > (limitMs ?? timeoutMs + startAllowance))
      ended('timed_out', `did not return from ${call} within ${limitMs ?? timeoutMs} ms`, 'make the call return');
    else if (process.memoryUsage.rss() > request.memoryBytes)
      ended('died', `exceeded the memory limit of ${gibibytes(request.memoryBytes)} in ${call}`, 'reduce memory use');
  }, 100);
  let thrown: Omit<Fault, 'action'> | undefined;
  worker.on('error', error => (thrown = faultOf(error)));
  worker.on('exit', code => {
    const remedy = 'throw an error instead of ending the process';
    const fault = thrown ?? { kind: 'died', what: `ended its thread with exit code ${code}`, remedy };
    if (!done) failed({ ...fault, action: -1 }, during());
  });
  worker.on('message', (message: FromWorker) => {
    if ('limitMs' in message) ({ name, limitMs } = message);
    else if ('fault' in message) failed(message.fault, loads);
    else {
      done = true;
      clearInterval(watch);
      const loaded: ContractCheck = { name: loads, state: 'passed', evidence: `Version ${bundle.version}.` };
      send([loaded, ...message.results.map(result => withLocation(result, bundle))], name);
    }
  });
}

function withLocation({ stack, ...check }: ContractResult, bundle: Bundle): ContractCheck {
  const at = sourceLocation(stack, bundle);
  return at === undefined ? check : { ...check, at };
}

/** Entry of the worker: loads the definition and checks it. */
async function work(request: ContractRequest & { setup: WorkerSetup }): Promise<void> {
  const { setup, seeds, steps, budgetMs, timeoutMs } = request;
  const shared = new Int32Array(setup.progress);
  const send = (message: FromWorker) => parentPort!.postMessage(message);
  try {
    const loaded = loadDefinition(setup);
    const { definition, rewards } = loaded;
    const config = parseConfig(definition.config, setup.config, setup.tag);
    const { name, patience_ms } = await describe(loaded, config);
    send({ name, limitMs: Math.max(timeoutMs, patience_ms) });
    const announce = (call: (typeof calls)[number]) => {
      Atomics.store(shared, callSlot, calls.indexOf(call));
      Atomics.add(shared, countSlot, 1);
    };
    send({ results: await checkContract(definition, config, { seeds, steps, budgetMs, announce, rewards }) });
  } catch (error) {
    send({ fault: { ...faultOf(error), action: -1 } });
  }
}
