// Probes a server for `ragen engine probe` and `ragen doctor`: sends a few requests, measures the server's speed, and
// lists the features that are unavailable to runs on this server. Before anything is sent, the environment variable
// with the API key is registered as a secret.
import { defaultKeyVariable, isServerUrl, withoutSlash } from '../../common/server-url';
import { UserError } from '../../common/user-error';
import { greetServer } from '../../models/tinker/server-greeting';
import { inspectServer } from '../../models/tinker/server-inspection';
import type { EngineReport } from '../../protocol/engine-report';
import { ignoredByEngine, limitsOf, supportedText } from '../../run-data/engine-limits';
import { serverKey } from './server-key';

export interface ProbeRequest {
  url: string;
  /**
   * Environment variable that holds the API key. Undefined: the default variable, if it is set. Null: no key is sent.
   */
  keyEnv: string | null | undefined;
  /** The name by which the server offers the base model; may be null if the server offers only one base model. */
  model: string | null;
  rank: number;
  critic: boolean;
  /** If true, the probe creates no model on the server, so nothing is measured. */
  quick: boolean;
  timeoutS: number;
  signal: AbortSignal;
  onPhase(phase: string): void;
}

/** Maximum milliseconds of one HTTP request. */
const requestMs = 30_000;

/** Probes a server. @throws UserError with place, value and remedy */
export async function probeEngine(asked: ProbeRequest): Promise<EngineReport> {
  const { keyEnv, model, quick, timeoutS } = asked;
  if (!isServerUrl(asked.url))
    throw new UserError(
      'engine: the URL is not the address of a server: give an http or https URL without user, path or query, such as https://host:8000',
    );
  const url = withoutSlash(asked.url);
  const key = serverKey(keyEnv);
  const late = AbortSignal.timeout(timeoutS * 1000);
  const signal = AbortSignal.any([asked.signal, late]);
  const timeoutMs = Math.min(requestMs, timeoutS * 1000);
  try {
    const greeting = await greetServer({ url, key, keyName: keyEnv ?? defaultKeyVariable, timeoutMs, signal });
    const offered = greeting.models.map(({ name }) => name);
    if (model !== null && offered.length > 0 && !offered.includes(model))
      throw new UserError(`engine: ${url} does not offer the model ${model}: choose one of ${offered.join(', ')}`);
    const chosen = model ?? (offered.length === 1 ? offered[0] : null);
    const { rank, critic, onPhase } = asked;
    const measured =
      quick || chosen === null
        ? null
        : await inspectServer({ url, key, model: chosen, rank, critic, requestMs: timeoutMs, signal, onPhase });
    return {
      url,
      encrypted: url.startsWith('https:'),
      ...greeting,
      measured,
      not_measured: measured ? null : quick ? 'not asked for' : 'the server offers several models: choose one',
      limits: limitsOf({
        critic: measured?.critic?.offered ?? null,
        keepsVersions: measured?.keeps_versions ?? null,
      }).map(({ key, supported, reason }) => ({ key, supported: supportedText(supported), reason })),
      ignored: ignoredByEngine.map(entry => ({ ...entry })),
    };
  } catch (error) {
    if (late.aborted && !asked.signal.aborted)
      throw new UserError(
        `engine: ${url} has not completed the probe within ${timeoutS} s: the server may still be loading its model, so try again, or raise --timeout`,
      );
    throw error;
  }
}
