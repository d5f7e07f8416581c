// The engine of a run: a worker thread of this process that uses onnxruntime, or a server that speaks the Tinker REST
// API (workbench.engine). Everything after `openEngine` is the same for both.
import { withoutSlash } from '../../common/server-url';
import type { RunConfig } from '../config/schema';
import { startEngine, type RemoteEngine } from '../../engine/remote-engine';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import { readTextShape } from '../../models/weights/model-folder';
import { UserError } from '../../common/user-error';
import { installation } from '../../node/installation';
import type { StoredCheckpoint } from '../store/checkpoint';
import type { Timeline } from '../timeline/timeline';
import type { Journal } from './journal';
import type { SavedState } from './trainer-state';

/**
 * Maximum milliseconds of one HTTP request to a server. A computation may take longer, because its result is fetched by
 * separate requests.
 */
export const requestMs = 120_000;

/**
 * Number of published versions of the weights that stay on a server's disk, in addition to the
 * `workbench.max_staleness` versions that rollouts may still use.
 */
const keptVersions = 16;

/**
 * Checks that the engine can load a checkpoint. If the checkpoint was saved by a server with another URL, notes this in
 * the journal.
 * @throws UserError if the checkpoint was written by another kind of engine
 */
export function requireSameEngine(
  { workbench: { engine, engine_url } }: Pick<RunConfig, 'workbench'>,
  checkpoint: StoredCheckpoint | null,
  journal: Pick<Journal, 'event'>,
): void {
  if (!checkpoint) return;
  const { folder, manifest } = checkpoint;
  const { server } = manifest.state as Partial<SavedState>;
  if (engine === 'local' && server)
    throw new UserError(
      `config: workbench.engine is local, but ${folder} was written with workbench.engine=tinker, and its optimizer state is on ${server.url}: set workbench.engine=tinker, or start from its adapter with actor_rollout_ref.model.lora_adapter_path=${folder}`,
    );
  if (engine === 'tinker' && !server)
    throw new UserError(
      `config: workbench.engine is tinker, but ${folder} was written by the engine on this machine, and a server cannot load it: set workbench.engine=local, or choose a checkpoint of a run on a server`,
    );
  if (server && engine_url !== null && server.url !== withoutSlash(engine_url))
    journal.event('setting', `the checkpoint's state was saved by ${server.url} and is loaded by ${engine_url}`);
}

/**
 * Number of rows in one call of `generate` if the engine is on a server, which samples each row separately. The number
 * is large enough that the constant cost of a call does not matter. It is small enough that episodes can begin their
 * next turns while most rows of the wave are still being sampled.
 */
export const serverRows = 64;

/**
 * Starts the engine without a model; `load` then loads the model. `modelFolder` holds the tokenizer and config.json.
 * `resumes` is true if the run has a checkpoint.
 */
export async function openEngine(
  { workbench }: Pick<RunConfig, 'workbench'>,
  modelFolder: string,
  tokenizer: ChatTokenizer,
  journal: Pick<Journal, 'event'>,
  timeline: Pick<Timeline, 'request'>,
  resumes: boolean,
): Promise<RemoteEngine> {
  const { engine, engine_url, engine_model, engine_api_key_env, engine_requests, engine_outage_s } = workbench;
  if (engine === 'local' || engine_url === null) return startEngine(installation.engineWorker);
  const { TinkerEngine } = await import('../../models/tinker/tinker-engine'); // loads an HTTP client
  return new TinkerEngine({
    url: withoutSlash(engine_url),
    key: (engine_api_key_env !== null && process.env[engine_api_key_env]?.trim()) || null,
    baseModel: engine_model,
    timeoutMs: requestMs,
    outageMs: engine_outage_s * 1000,
    connections: engine_requests,
    resumes,
    keptVersions: keptVersions + workbench.max_staleness,
    onWarning: sentence => journal.event('warning', sentence),
    ...readTextShape(modelFolder),
    decode: ids => tokenizer.decode(ids, { special: true }),
    onRequest: path => timeline.request(path),
    onOutage: reason =>
      reason === null
        ? journal.event('setting', `${engine_url} answers again`)
        : journal.event('warning', `${engine_url} is unavailable (${reason}): the run waits for it`),
  });
}
