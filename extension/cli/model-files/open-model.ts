// Opens a model for one command: finds its folder, reads its configuration, and loads it in an engine in a worker
// thread. Reads the tokenizer if the folder has a usable one. Also converts input rows to token ids, and checks the ids
// against vocabulary and context length.
import { UserError } from '../../common/user-error';
import { untrained } from '../../engine/load-options';
import type { PictureOptions } from '../../engine/load-options';
import { chooseProvider, providerStates } from '../../engine/session/devices';
import type { Device } from '../../engine/session/devices';
import { startEngine } from '../../engine/remote-engine';
import type { RemoteEngine } from '../../engine/remote-engine';
import { installation } from '../../node/installation';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import type { DecoderConfig } from '../../models/decoder/decoder-config';
import { readDecoderConfig, readTokenizer } from '../../models/weights/model-folder';
import { modelFolder } from './fetch-model';
import { readInput } from '../input/token-input';

export interface ModelFlags {
  model: string;
  input: string;
  adapter?: string;
  device: Device;
  threads: number;
}

export interface OpenModel {
  folder: string;
  config: DecoderConfig;
  engine: RemoteEngine;
  /** The model's tokenizer. Null if the tokenizer is unusable and all rows are token ids. */
  tokenizer: ChatTokenizer | null;
  /** Token ids of each input row, in order, and the row's location for errors. */
  prompts: { ids: number[]; location: () => string }[];
}

/**
 * Reads the input, opens the model, runs `work` and closes the model.
 * @param asGenerationPrompt if true, messages are rendered with the assistant's header, and each row must leave room
 * for at least one more token
 * @throws UserError that names the file, the line or tensor, and the remedy
 */
export async function withModel<T>(
  flags: ModelFlags,
  asGenerationPrompt: boolean,
  work: (model: OpenModel) => Promise<T>,
): Promise<T> {
  const rows = await readInput(flags.input);
  chooseProvider(flags.device, await providerStates(), '--device');
  const folder = await modelFolder(flags.model, process.cwd(), '--model');
  const config = readDecoderConfig(folder);
  const tokenizer = tokenizerFor(
    folder,
    rows.some(row => 'messages' in row),
  );
  const prompts = rows.map(row => {
    const { location } = row;
    if ('tokens' in row) return { ids: row.tokens, location };
    if (!tokenizer) throw new Error('open-model: messages without a tokenizer');
    return { ids: tokenizer.encode(tokenizer.render(row.messages, asGenerationPrompt)), location };
  });
  for (const { ids, location } of prompts) checkIds(ids, location, config, asGenerationPrompt);
  const engine = startEngine(installation.engineWorker);
  try {
    await loadModel(engine, folder, flags);
    return await work({ folder, config, engine, tokenizer, prompts });
  } finally {
    await engine.stop();
  }
}

/** Loads a model for scoring and sampling, without the parts that only training needs. `--device` is named in errors. */
export const loadModel = (
  engine: RemoteEngine,
  folder: string,
  {
    adapter,
    device,
    threads,
    pictures,
  }: { adapter?: string; device: Device; threads: number; pictures?: PictureOptions },
): Promise<unknown> =>
  engine.load({
    ...untrained,
    modelFolder: folder,
    adapterFolder: adapter ?? null,
    device,
    deviceKey: '--device',
    threads,
    maxPositions: null,
    cacheFolder: installation.cache,
    ...(pictures && { pictures }),
  });

/** Throws if an id is outside the vocabulary, or if there are more ids than the context length. */
function checkIds(
  ids: readonly number[],
  location: () => string,
  { vocabSize, maxPositions }: DecoderConfig,
  leaveRoom: boolean,
): void {
  const bad = ids.findIndex(id => id >= vocabSize);
  if (bad >= 0)
    throw new UserError(
      `${location()}.tokens[${bad}] is ${ids[bad]}, but the model's token ids are 0 to ${vocabSize - 1}: use ids of this model's tokenizer`,
    );
  const most = leaveRoom ? maxPositions - 1 : maxPositions;
  if (ids.length > most)
    throw new UserError(
      `${location()} has ${ids.length} tokens, but the model's context has only ${maxPositions}${leaveRoom ? ', and the answer needs at least one token' : ''}: shorten the row to ${most} tokens`,
    );
}

/**
 * Returns the folder's tokenizer; null if it is unusable and `needed` is false. Throws if it is unusable and `needed`
 * is true.
 */
function tokenizerFor(folder: string, needed: boolean): ChatTokenizer | null {
  try {
    return readTokenizer(folder);
  } catch (error) {
    if (needed || !(error instanceof UserError)) throw error;
    return null;
  }
}
