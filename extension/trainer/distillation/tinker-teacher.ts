// A teacher on a server of the Tinker API: the base model, to which a new adapter that is never trained adds nothing. The
// adapter is created because the API scores only models of a session. Outages of the server are waited out, as for a
// policy on a server. The server must have the policy's vocabulary; this cannot be checked over the API.
import { setTimeout as sleep } from 'node:timers/promises';
import { withoutSlash } from '../../common/server-url';
import { chosenModel } from '../../models/tinker/loaded-models';
import { ServerModel } from '../../models/tinker/server-model';
import type { KeyNames } from '../../models/tinker/server-refusal';
import { openSession } from '../../models/tinker/server-session';
import { StoppableCalls } from '../../models/tinker/stoppable-calls';
import { TinkerConnection, type ConnectionOptions } from '../../models/tinker/tinker-connection';
import { capabilitiesSchema } from '../../models/tinker/tinker-wire';
import { requestMs } from '../run/run-engine';
import type { Teacher, TeacherOptions } from './teacher';

const at = 'workbench.distillation.server';
const keyNames: KeyNames = { url: `${at}.url`, key: `${at}.api_key_env`, model: `${at}.model` };

/** The adapter that is created but never trained; servers may refuse smaller ranks. */
const adapter = { rank: 8, seed: 0, parts: { train_attn: true, train_mlp: true, train_unembed: false } };
/** Maximum milliseconds for unloading the model at the end. */
const unloadMs = 3000;

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
  const connection = new TinkerConnection({
    ...{ url, keyNames, timeoutMs: requestMs, outageMs: engine_outage_s * 1000, connections: engine_requests, pauseMs },
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
    connection.interrupt();
  };
  control.stopped.addEventListener('abort', stop, { once: true });
  let model: ServerModel | undefined;
  const close = async (): Promise<void> => {
    control.stopped.removeEventListener('abort', stop);
    const unloaded = model?.unload().catch(() => undefined); // the server drops the model after the last heartbeat
    await Promise.race([unloaded, sleep(unloadMs, undefined, { ref: false })]);
    await connection.close();
  };
  const create = async (): Promise<string> => {
    const { supported_models } = await connection.get('get_server_capabilities', capabilitiesSchema);
    const offered = supported_models.map(({ model_name }) => model_name);
    const base = chosenModel(name, offered, url, keyNames.model);
    const session = await openSession(connection);
    model = await ServerModel.create(connection, url, { ...adapter, session, number: 0, base });
    return base;
  };
  try {
    journal.event('setting', `the teacher is ${await calls.result(create())} on ${url}`);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    logprobs: (samples, onProgress) => {
      onPass = onProgress;
      return calls.result(
        model!.logprobs(
          samples.map(({ ids, mask }) => ({ ids, mask })),
          calls.units,
        ),
      );
    },
    close,
  };
}
