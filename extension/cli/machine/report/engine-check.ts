// The check of a server in `ragen doctor`: address, certificate, key, model and round trip, for the server that an option
// or the configuration names. Nothing is created on the server.
import { UserError } from '../../../common/user-error';
import type { EngineReport } from '../../../protocol/engine-report';
import { engineRows } from '../../../protocol/engine-report-text';
import type { RunConfig } from '../../../trainer/config/schema';
import { probeEngine } from '../../engine/probe-engine';

/** Options of `ragen doctor` that name a server. */
export interface EngineFlags {
  engine?: string;
  engineKeyEnv?: string;
  engineModel?: string;
}

/** What was found; `problem` is one sentence if the server cannot be used. */
export type CheckedEngine = EngineReport | { url: string; problem: string };

/** Maximum seconds of the check. */
const timeoutS = 30;

/** Checks the server of the options, else that of the configuration; null if there is none. */
export async function checkEngine(
  { engine, engineKeyEnv, engineModel }: EngineFlags,
  config: Pick<RunConfig, 'workbench'> | undefined,
): Promise<CheckedEngine | null> {
  const workbench = config?.workbench;
  const configured = workbench?.engine === 'tinker' ? workbench.engine_url : null;
  const url = engine ?? configured;
  if (url === null) return null;
  const asked =
    engine === undefined
      ? { keyEnv: presentVariable(workbench?.engine_api_key_env ?? null), model: workbench?.engine_model ?? null }
      : { keyEnv: engineKeyEnv, model: engineModel ?? null };
  try {
    return await probeEngine({
      ...{ url, ...asked, rank: 1, critic: false, quick: true, timeoutS },
      ...{ signal: new AbortController().signal, onPhase: () => undefined },
    });
  } catch (error) {
    if (error instanceof UserError) return { url, problem: error.message };
    throw error;
  }
}

/** A variable that is set; a run whose variable is not set sends no key. */
const presentVariable = (name: string | null): string | null =>
  name !== null && (process.env[name]?.trim() ?? '') !== '' ? name : null;

/** The check as rows of name and value. */
export const engineCheckRows = (checked: CheckedEngine): [string, string][] =>
  'problem' in checked
    ? [['Engine', checked.problem.replace(/^engine: /, '')]]
    : engineRows(checked)
        .filter(([name]) => name !== 'Measured')
        .map(([name, value], i): [string, string] => (i === 0 ? ['Engine', value] : [`  ${name}`, value]));
