// Holds an environment against its contract, in a process of its own (`environment-contract.cjs`), since its code may end the process, and
// against the cases that its author wrote down.
import { fork } from 'node:child_process';
import { endStarted, markVariable, newMark } from '../../protocol/end-processes';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import type { ContractReport } from '../../protocol/environment-tools';
import { appendAll } from '../../protocol/lists';
import { UserError } from '../../protocol/user-error';
import { OutputBudget } from '../../protocol/output-budget';
import { installation } from '../installation';
import { environmentMemory } from '../machine-memory';
import { environmentVariables } from '../rollout/environment-variables';
import { printedPerSecond } from '../rollout/process-life';
import { handOn } from '../rollout/printed-output';
import { secrets } from '../secrets';
import { checkCases } from './expected-cases';
import { atPlace } from './tool-process';

/** Milliseconds after which no further seed is begun. */
const budgetMs = 20_000;

export interface CheckOptions {
  /** Episodes of random play. */
  seeds: number;
  /** Most actions of an episode. */
  steps: number;
  /** Milliseconds that a call into environment code may take, where the environment does not ask for more. */
  timeoutMs: number;
}

/** @throws UserError where the environment ends the process */
export async function checkEnvironment(
  spec: EnvironmentSpec,
  workspace: string,
  options: CheckOptions,
): Promise<ContractReport> {
  const { tag, source, config } = spec;
  secrets.nameAllIn(config);
  const mark = newMark();
  const child = fork(installation.environmentContract, [], {
    execArgv: [],
    detached: process.platform !== 'win32', // leads a process group
    env: { ...environmentVariables([spec], installation.environments), [markVariable]: mark },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    serialization: 'advanced',
  });
  const printed = new OutputBudget(printedPerSecond);
  for (const output of [child.stdout, child.stderr]) handOn(output, printed, text => process.stderr.write(text));
  child.send({ tag, source, config, budgetMs, memoryBytes: environmentMemory(), ...options });
  const report = await new Promise<ContractReport>((resolve, reject) => {
    child.once('message', message => resolve(message as ContractReport));
    child.once('error', error => reject(new UserError(`check: ${process.execPath} does not start: ${error.message}`)));
    child.once('exit', (code, signal) =>
      reject(
        new UserError(
          `check: environment ${tag} (${source}) ended its process (${signal ?? `exit code ${code}`}): throw an error instead`,
        ),
      ),
    );
  }).finally(() => endStarted(child.pid, mark));
  const checks = report.checks.map(check => ({ ...check, evidence: atPlace(check.evidence, tag, 'env_config') }));
  const [loaded] = checks;
  if (loaded.state === 'passed') appendAll(checks, await checkCases(spec, workspace));
  return { ...report, checks };
}
