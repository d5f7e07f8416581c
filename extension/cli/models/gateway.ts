// `ragen gateway`: serves a model to programs as in training (docs/GATEWAY.md), without training, until interrupted. The
// address contains a secret, because every program of this machine can reach a local port.
import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { CallServer } from '../../../envs/api/model-server/call-server';
import { UserError } from '../../common/user-error';
import { chooseProvider, providerStates, devices, type Device } from '../../engine/session/devices';
import { startEngine } from '../../engine/remote-engine';
import { readDecoderConfig, readTokenizer } from '../../models/weights/model-folder';
import { toolFormats, type ToolFormat } from '../../models/tokenizer/tool-syntax';
import { installation } from '../../node/installation';
import { modelFolder } from '../model-files/fetch-model';
import { loadModel } from '../model-files/open-model';
import { device, number, wholeNumber, type Parse } from '../options/model-options';
import { answer, type Answer } from '../output/answer';
import { GatewayCalls, type CallRecord } from './gateway-calls';

interface GatewayFlags {
  model: string;
  adapter?: string;
  device: Device;
  threads: number;
  port: number;
  seed: number;
  temperature: number;
  maxNewTokens: number;
  tools: ToolFormat;
  log?: string;
  json?: boolean;
}

const toolFormat: Parse<ToolFormat> = text => {
  const found = toolFormats.find(name => name === text);
  if (found) return found;
  throw new UserError(`--tools is ${JSON.stringify(text)}: use one of ${toolFormats.join(', ')}`);
};

export function addGateway(program: Command): void {
  program
    .command('gateway')
    .description('serve a model to programs over the APIs of OpenAI and Anthropic, as in training')
    .requiredOption(
      '--model <model>',
      'folder in Hugging Face format, hub model (organisation/name), or the name of a bundled model',
    )
    .option('--adapter <folder>', 'LoRA adapter in PEFT format, applied to the model')
    .option('--device <name>', `where the model runs: ${devices.join(', ')}`, device, 'cpu')
    .option('--threads <count>', 'threads on the CPU; 0 for one per core', wholeNumber('--threads', 0, 1024), 0)
    .option('--port <number>', 'port on 127.0.0.1; 0 selects a free port', wholeNumber('--port', 0, 65_535), 0)
    .option('--seed <number>', 'seed of the random numbers for sampling', wholeNumber('--seed', 0), 0)
    .option(
      '--temperature <number>',
      'sampling temperature; that of a call is ignored',
      number('--temperature', x => x > 0, 'above 0'),
      1,
    )
    .option('--max-new-tokens <count>', 'maximum tokens of a reply', wholeNumber('--max-new-tokens', 1), 256)
    .option('--tools <format>', `how the model writes tool calls: ${toolFormats.join(', ')}`, toolFormat, 'auto')
    .option('--log <file>', 'JSONL file to which each call is added, with its exact tokens and log-probs')
    .option('--json', 'print one JSON document on standard output, calls on standard error')
    .action((flags: GatewayFlags) => answer(flags, () => serve(flags)));
}

/** Starts the server, which then runs until it is interrupted. */
async function serve(flags: GatewayFlags): Promise<Answer> {
  chooseProvider(flags.device, await providerStates(), '--device');
  const folder = await modelFolder(flags.model, process.cwd(), '--model');
  const { maxPositions } = readDecoderConfig(folder);
  const tokenizer = readTokenizer(folder);
  const syntax = tokenizer.toolSyntax(flags.tools);
  const record = logTo(flags.log);
  const engine = startEngine(installation.engineWorker);
  try {
    await loadModel(engine, folder, flags);
    const server = await CallServer.start(flags.port).catch((error: NodeJS.ErrnoException) => {
      throw new UserError(`gateway: port ${flags.port} cannot be used (${error.code}): choose another with --port`);
    });
    const line = server.open();
    const calls = new GatewayCalls(engine, tokenizer, {
      ...{ syntax, seed: flags.seed, max_model_len: maxPositions, response_length: flags.maxNewTokens },
      sampling: {
        ...{ temperature: flags.temperature, top_p: 1, top_k: 0, min_p: 0, repetition_penalty: 1, do_sample: true },
        ...{ stop: [], max_new_tokens: flags.maxNewTokens, max_model_len: maxPositions },
        stop_token_ids: tokenizer.stopTokenIds,
      },
    });
    const interrupted = new AbortController();
    const end = () => interrupted.abort();
    process.once('SIGINT', end).once('SIGTERM', end);
    void calls
      .serve(line, record, interrupted.signal)
      .catch((error: Error) => {
        process.stderr.write(`gateway: ${error.message}\n`);
        process.exitCode = 1;
      })
      .finally(() => server.close().then(() => engine.stop()));
    const [url, key] = [line.url, line.secret];
    return {
      document: { url, key, anthropic_url: line.address, log: flags.log === undefined ? null : resolve(flags.log) },
      plainText: `Serving at ${url}, until Ctrl-C. For programs:\n  export OPENAI_BASE_URL=${url}\n  export OPENAI_API_KEY=${key}`,
    };
  } catch (error) {
    await engine.stop();
    throw error;
  }
}

/** Returns a function that prints each call and, with a file, adds it there. @throws UserError if the file is unusable */
function logTo(file: string | undefined): (record: CallRecord) => void {
  const path = file === undefined ? undefined : resolve(file);
  if (path !== undefined)
    try {
      mkdirSync(dirname(path), { recursive: true });
      appendFileSync(path, '');
    } catch (error) {
      throw new UserError(`--log ${path} cannot be written (${(error as Error).message}): give another file`);
    }
  return record => {
    const { call, continues, prompt_tokens, tokens, finish, text } = record;
    const of = continues === null ? 'begins a conversation' : `continues call ${continues}`;
    process.stderr.write(
      `call ${call} ${of}: ${prompt_tokens.length} + ${tokens.length} tokens, ${finish}: ${JSON.stringify(text.slice(0, 200))}\n`,
    );
    if (path !== undefined) appendFileSync(path, `${JSON.stringify(record)}\n`);
  };
}
