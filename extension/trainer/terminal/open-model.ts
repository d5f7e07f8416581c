// A model opened for one command of the terminal: its folder found, its configuration read, an engine in a worker thread that has
// loaded it, and a tokenizer where the folder has one that can be used. The input's rows become ids here, checked against vocabulary and context.
import { UserError } from '../../protocol/user-error';
import { chooseProvider, providerStates } from '../engine/devices';
import type { Device } from '../engine/devices';
import { startEngine } from '../engine/remote-engine';
import type { RemoteEngine } from '../engine/remote-engine';
import { installation } from '../installation';
import type { ChatTokenizer } from '../models/chat-tokenizer';
import type { DecoderConfig } from '../models/decoder-config';
import { readDecoderConfig, readTokenizer } from '../models/model-folder';
import { modelFolder } from './fetch-model';
import { readInput } from './token-input';

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
  /** Null where the folder has none that can be used and no row needs one. */
  tokenizer: ChatTokenizer | null;
  /** Each input row's ids, in order, and where it stands. */
  prompts: { ids: number[]; place: () => string }[];
}

/**
 * Reads the input, opens the model for it, runs `work` and closes the model again.
 * @param asGenerationPrompt messages are rendered with the assistant's header, and a row must leave room for a token
 * @throws UserError naming file, line or tensor, and remedy
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
    const { place } = row;
    if ('tokens' in row) return { ids: row.tokens, place };
    if (!tokenizer) throw new Error('open-model: messages without a tokenizer');
    return { ids: tokenizer.encode(tokenizer.render(row.messages, asGenerationPrompt)), place };
  });
  for (const { ids, place } of prompts) checkIds(ids, place, config, asGenerationPrompt);
  const engine = startEngine(installation.engineWorker);
  try {
    await engine.load({
      modelFolder: folder,
      adapterFolder: flags.adapter ?? null,
      device: flags.device,
      deviceKey: '--device',
      threads: flags.threads,
      lora: null,
      rolloutQuantization: 'none',
      baseQuantization: 'none',
      checkpointed: false,
      referenceFolder: null,
      critic: false,
      seed: 0,
      maxPositions: null,
      cacheFolder: installation.cache,
    });
    return await work({ folder, config, engine, tokenizer, prompts });
  } finally {
    await engine.stop();
  }
}

/** Throws the sentence about ids that the model has no row of embeddings or no position for. */
function checkIds(
  ids: readonly number[],
  place: () => string,
  { vocabSize, maxPositions }: DecoderConfig,
  leaveRoom: boolean,
): void {
  const bad = ids.findIndex(id => id >= vocabSize);
  if (bad >= 0)
    throw new UserError(
      `${place()}.tokens[${bad}] is ${ids[bad]}, but the model knows the tokens 0 to ${vocabSize - 1}: use ids of this model's tokenizer`,
    );
  const most = leaveRoom ? maxPositions - 1 : maxPositions;
  if (ids.length > most)
    throw new UserError(
      `${place()} has ${ids.length} tokens, but the model's context has ${maxPositions}${leaveRoom ? ', one of them for an answer' : ''}: shorten it to ${most}`,
    );
}

/** The folder's tokenizer. Where there is none that can be used and it is not needed, that is a note and no error. */
function tokenizerFor(folder: string, needed: boolean): ChatTokenizer | null {
  try {
    return readTokenizer(folder);
  } catch (error) {
    if (needed || !(error instanceof UserError)) throw error;
    return null;
  }
}
