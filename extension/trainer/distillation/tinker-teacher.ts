// A teacher on a server of the Tinker API: the server's base model. Outages of the server are waited out, as for a policy
// on a server. The server must have the policy's vocabulary; this cannot be checked over the API.
import { withoutSlash } from '../../common/server-url';
import { FrozenBase } from '../../models/tinker/frozen-base';
import { StoppableCalls } from '../../models/tinker/stoppable-calls';
import type { ConnectionOptions } from '../../models/tinker/tinker-connection';
import { requestMs } from '../run/run-engine';
import { requireTextOnly } from './teacher';
import type { Teacher, TeacherOptions } from './teacher';

const at = 'workbench.distillation.server';
const keyNames = { url: `${at}.url`, key: `${at}.api_key_env`, model: `${at}.model` };

/**
 * Connects to the server and creates the teacher's model.
 * @param pauseMs pauses between attempts, for tests
 * @throws UserError if the server cannot be used, or RunStopped after a stop
 */
export async function openTinkerTeacher(
  { config, control, journal }: Pick<TeacherOptions, 'config' | 'control' | 'journal'>,
  environment: Readonly<Record<string, string | undefined>> = process.env,
  pauseMs?: ConnectionOptions['pauseMs'],
): Promise<Teacher> {
  const { distillation, engine_requests, engine_outage_s } = config.workbench;
  const { url: given, model: name, api_key_env } = distillation!.server!;
  const url = withoutSlash(given);
  const model = FrozenBase.on({
    ...{ url, name, keyNames, timeoutMs: requestMs, outageMs: engine_outage_s * 1000 },
    ...{ connections: engine_requests, pauseMs },
    key: (api_key_env !== null && environment[api_key_env]?.trim()) || null,
    onOutage: reason =>
      reason === null
        ? journal.event('setting', `the teacher ${url} answers again`)
        : journal.event('warning', `the teacher ${url} is unavailable (${reason}): the run waits for it`),
  });
  let onPass: (done: number, of: number) => void = () => undefined;
  const calls = new StoppableCalls((done, of) => onPass(done, of));
  const stop = (): void => {
    calls.stop();
    model.interrupt();
  };
  control.stopped.addEventListener('abort', stop, { once: true });
  const close = async (): Promise<void> => {
    control.stopped.removeEventListener('abort', stop);
    await model.close();
  };
  try {
    journal.event('setting', `the teacher is ${await calls.result(model.create())} on ${url}`);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    logprobs: async (samples, onProgress) => {
      requireTextOnly(samples, at);
      onPass = onProgress;
      const masked = samples.map(({ ids, mask }) => ({ ids, mask }));
      return calls.result(model.logprobs(masked, calls.units));
    },
    close,
  };
}
