// Checks an environment against its contract and against the cases of its author (expected-cases.ts). The contract is
// checked in a separate process (`environment-contract.cjs`), because environment code may end its process, suspend it,
// or write to its channel.
import { spawn } from 'node:child_process';
import { fromContractSchema, type ToContract } from '../../protocol/contract-link';
import { killTree, ownerTagVariable, newOwnerTag } from '../../node/end-processes';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import type { ContractReport } from '../../protocol/environment-tools';
import { FrameChannel } from '../../node/frame-channel';
import { appendAll } from '../../common/lists';
import { UserError } from '../../common/user-error';
import { OutputBudget } from '../../node/output-budget';
import { installation } from '../../node/installation';
import { environmentMemory } from '../../node/machine-memory';
import { environmentVariables } from '../client/environment-variables';
import { pipeLines } from '../client/printed-output';
import { channelOffence, pipeOf, printedPerSecond } from '../client/process-handle';
import { ProcessWatch, type Offence } from '../client/process-watch';
import { secrets } from '../../node/secrets';
import { checkCases } from './expected-cases';
import { withLocation } from './tool-process';

/** Milliseconds after which no new episode of random play is started. */
const budgetMs = 20_000;
/**
 * Milliseconds to wait for the exit of a process whose channel has closed. The wait is useful because the exit code is
 * a more specific error than the closed channel.
 */
const endMs = 300;

export interface CheckOptions {
  /** Number of episodes of random play. */
  seeds: number;
  /** Maximum number of actions per episode. */
  steps: number;
  /** Time limit in milliseconds of a call into environment code; an environment's `patience` may raise it. */
  timeoutMs: number;
}

/**
 * Checks the contract and, if the environment loads, the cases that its author wrote.
 * @throws UserError if the environment ends, suspends or blocks the process, or writes to its channel
 */
export async function checkEnvironment(
  spec: EnvironmentSpec,
  workspace: string,
  options: CheckOptions,
): Promise<ContractReport> {
  secrets.nameAllIn(spec.config);
  const report = await contractReport(spec, options);
  const checks = report.checks.map(check => ({
    ...check,
    evidence: withLocation(check.evidence, spec.tag, 'env_config'),
  }));
  const [loaded] = checks;
  if (loaded.state === 'passed') appendAll(checks, await checkCases(spec, workspace));
  return { ...report, checks };
}

/** Runs the contract process and returns its report. Ends the process and its children in any case. */
async function contractReport(spec: EnvironmentSpec, options: CheckOptions): Promise<ContractReport> {
  const { tag, source, scored, config } = spec;
  const ownerTag = newOwnerTag();
  const memoryBytes = environmentMemory();
  const child = spawn(process.execPath, [installation.environmentContract], {
    detached: process.platform !== 'win32', // starts a process group
    windowsHide: true,
    env: {
      ...environmentVariables([spec], installation.environments),
      ...(process.versions.electron && { ELECTRON_RUN_AS_NODE: '1' }),
      [ownerTagVariable]: ownerTag,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'overlapped'],
  });
  const end = (): void => killTree(child.pid, ownerTag);
  process.once('exit', end); // a process stopped by SIGSTOP cannot react to the closed channel
  const printed = new OutputBudget(printedPerSecond);
  for (const output of [child.stdout, child.stderr]) pipeLines(output, printed, text => process.stderr.write(text));
  const closes = [() => process.off('exit', end), end];
  try {
    return await new Promise<ContractReport>((resolve, reject) => {
      const offended = ({ what, remedy }: Pick<Offence, 'what' | 'remedy'>): void =>
        reject(new UserError(`check: environment ${tag} (${source}) ${what}: ${remedy}`));
      let answered: (() => void) | undefined;
      const channel = new FrameChannel(pipeOf(child), {
        message: message => {
          const { data } = fromContractSchema.safeParse(message);
          if (data === undefined) return offended(channelOffence('sent an invalid message'));
          watch.signOfLife();
          if (data.method === 'report') resolve(data.report);
          else answered?.();
        },
        broken: (why, ended) => {
          if (ended) setTimeout(() => offended(channelOffence(why)), endMs).unref();
          else offended(channelOffence(why));
        },
      });
      const send = (message: ToContract): void => channel.send(message);
      const watch = new ProcessWatch(
        { pid: child.pid, ownerTag, memoryBytes, limits: {} },
        {
          ping: () =>
            new Promise(resolve => {
              answered = () => resolve([]);
              send({ method: 'ping' });
            }),
          offended,
        },
      );
      closes.push(
        () => watch.endGroup(),
        () => watch.close(),
        () => channel.close(),
      );
      child.once('error', error =>
        reject(new UserError(`check: ${process.execPath} does not start: ${error.message}`)),
      );
      child.once('exit', (code, signal) =>
        offended(
          watch.exitOffence(signal) ?? {
            what: `ended its process (${signal ?? `exit code ${code}`})`,
            remedy: 'throw an error instead',
          },
        ),
      );
      send({
        method: 'check',
        request: { tag, source, ...(scored && { scored }), config, budgetMs, memoryBytes, ...options },
      });
    });
  } finally {
    for (const close of closes) close();
  }
}
