// The engine of a run: a worker thread of this process with onnxruntime, or a server that speaks the Tinker REST API
// (workbench.engine). Everything after `openEngine` is the same for both.
import type { RunConfig } from '../config/schema';
import { startEngine, type RemoteEngine } from '../../engine/remote-engine';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import { TinkerEngine } from '../../models/tinker/tinker-engine';
import { readTextShape } from '../../models/weights/model-folder';
import { installation } from '../../node/installation';
import type { Journal } from './journal';

/**
 * Maximum milliseconds of one HTTP request to a server. A computation may take longer, because its result is fetched by
 * separate requests.
 */
const requestMs = 120_000;

/**
 * Starts the engine without a model; `load` then loads the model. `modelFolder` holds the tokenizer and config.json.
 */
export function openEngine(
  { workbench }: Pick<RunConfig, 'workbench'>,
  modelFolder: string,
  tokenizer: ChatTokenizer,
  journal: Pick<Journal, 'event'>,
): RemoteEngine {
  const { engine, engine_url, engine_model, engine_api_key_env, engine_requests, engine_outage_s } = workbench;
  if (engine === 'local' || engine_url === null) return startEngine(installation.engineWorker);
  return new TinkerEngine({
    url: engine_url.replace(/\/+$/, ''),
    key: process.env[engine_api_key_env]?.trim() || null,
    baseModel: engine_model,
    timeoutMs: requestMs,
    outageMs: engine_outage_s * 1000,
    connections: engine_requests,
    ...readTextShape(modelFolder),
    decode: ids => tokenizer.decode(ids, { special: true }),
    onOutage: reason =>
      reason === null
        ? journal.event('setting', `${engine_url} answers again`)
        : journal.event('warning', `${engine_url} does not answer (${reason}): the run waits for it`),
  });
}
