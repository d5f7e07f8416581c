// The model under which `ragen diagnose` scores texts: a folder that this machine runs, or the base model of a server of
// the Tinker API (--engine). Both need the model's tokenizer on this machine.
import { availableParallelism } from 'node:os';
import { isServerUrl, withoutSlash } from '../../common/server-url';
import { UserError } from '../../common/user-error';
import type { Engine } from '../../engine/engine';
import type { PictureOptions } from '../../engine/load-options';
import { startEngine } from '../../engine/remote-engine';
import { chooseProvider, providerStates, type Device } from '../../engine/session/devices';
import { FrozenBase } from '../../models/tinker/frozen-base';
import { pairScores } from '../../models/tinker/pair-scores';
import { StoppableCalls } from '../../models/tinker/stoppable-calls';
import { installation } from '../../node/installation';
import { requestMs } from '../../trainer/run/run-engine';
import { serverKey } from '../engine/server-key';
import { loadModel } from '../model-files/open-model';

export interface DiagnosingEngine {
  crossScore: Engine['crossScore'];
  /** Receives the progress of a call. */
  onUnits(done: number, of: number): void;
  stop(): Promise<void>;
}

export interface LocalEngineFlags {
  device: Device;
  threads: number;
}

/**
 * Loads a model folder on this machine.
 * @param pictures what the model is shown, if it reads pictures
 * @throws UserError if the model or the device cannot be used
 */
export async function localEngine(
  folder: string,
  { device, threads }: LocalEngineFlags,
  pictures: PictureOptions,
): Promise<DiagnosingEngine> {
  chooseProvider(device, await providerStates(), '--device');
  const engine = startEngine(installation.engineWorker);
  try {
    const half = Math.max(1, Math.floor(availableParallelism() / 2));
    await loadModel(engine, folder, { device, threads: threads > 0 ? threads : half, pictures });
  } catch (error) {
    await engine.stop();
    throw error;
  }
  return engine;
}

export interface ServerEngineFlags {
  /** URL of the server. */
  engine: string;
  serverModel?: string;
  /** Environment variable with the API key. */
  keyEnv?: string;
  /** False if no key is sent. */
  key: boolean;
}

/** Maximum milliseconds of an outage of the server. */
const outageMs = 600_000;
const keyNames = { url: '--engine', key: '--key-env', model: '--server-model' };

/** Where a server is, and how it is used. */
export interface ScoringServer {
  url: string;
  key: string | null;
  /** Name of the base model; null if the server offers only one. */
  name: string | null;
}

/** Reads the options of a server. @throws UserError if the URL or the key is invalid */
export function scoringServer({ engine, serverModel, keyEnv, key }: ServerEngineFlags): ScoringServer {
  if (!isServerUrl(engine))
    throw new UserError(
      'diagnose: --engine is not the address of a server: give an http or https URL without user, path or query, such as https://host:8000',
    );
  return { url: withoutSlash(engine), key: serverKey(key ? keyEnv : null), name: serverModel ?? null };
}

/**
 * Connects to a server and creates a model on it that is never trained.
 * @param report prints a sentence about the connection
 * @throws UserError if the server cannot be used
 */
export async function serverEngine(
  { url, key, name }: ScoringServer,
  report: (text: string) => void,
): Promise<DiagnosingEngine> {
  const base = FrozenBase.on({
    ...{ url, key, name, keyNames, timeoutMs: requestMs, outageMs, connections: 4 },
    onOutage: reason => report(reason === null ? `${url} answers again` : `${url} is unavailable (${reason}): waiting`),
  });
  try {
    report(`scoring with ${await base.create()} on ${url}`);
  } catch (error) {
    await base.close();
    throw error;
  }
  const calls = new StoppableCalls((done, of) => opened.onUnits(done, of));
  const opened: DiagnosingEngine = {
    crossScore: (prompts, texts) =>
      calls.result(pairScores(prompts, texts, pairs => base.logprobs(pairs, calls.units))),
    onUnits: () => undefined,
    stop: () => base.close(),
  };
  return opened;
}
