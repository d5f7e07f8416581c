// Checks a server for `ragen doctor`: its address, certificate, API key, model and round-trip time. An option or the
// configuration names the server. Nothing is created on the server.
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

/** The result of the check. If the server cannot be used, `problem` is one sentence with the reason. */
export type CheckedEngine = EngineReport | { url: string; problem: string };

/** Maximum seconds of the check. */
const timeoutS = 30;

/**
 * Checks the server that the options name, or else the server that the configuration names. Returns null if neither
 * names a server.
 */
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

/**
 * Returns the name of an environment variable if the variable is set, else null. If the variable for the API key is not
 * set, a run sends no API key.
 */
const presentVariable = (name: string | null): string | null =>
  name !== null && (process.env[name]?.trim() ?? '') !== '' ? name : null;

/** Formats the result of the check as table rows of name and value. */
export const engineCheckRows = (checked: CheckedEngine): [string, string][] =>
  'problem' in checked
    ? [['Engine', checked.problem.replace(/^engine: /, '')]]
    : engineRows(checked)
        .filter(([name]) => name !== 'Measured')
        .map(([name, value], i): [string, string] => (i === 0 ? ['Engine', value] : [`  ${name}`, value]));
