// `ragen engine probe`: connects to a server of the Tinker API and reports what it is, what it can do and how fast it
// answers. The key is read from an environment variable, and is never part of an argument, an error or the report.
import { InvalidArgumentError, type Command } from 'commander';
import { UserError } from '../../common/user-error';
import { engineText } from '../../protocol/engine-report-text';
import { answer, type Answer } from '../output/answer';
import { probeEngine } from './probe-engine';

interface ProbeFlags {
  keyEnv?: string;
  key: boolean;
  model?: string;
  rank: number;
  critic?: boolean;
  quick?: boolean;
  timeout: number;
  json?: boolean;
}

export function addEngineProbe(engine: Command): void {
  engine
    .command('probe')
    .description('report what a server of the Tinker API can do, and how fast it answers')
    .argument('<url>', 'URL of the server, such as https://host:8000')
    .option('--key-env <name>', 'environment variable with the API key (default: TINKER_API_KEY, if it is set)')
    .option('--no-key', 'send no API key')
    .option('--model <name>', 'name of the base model on the server; required if the server offers several models')
    .option('--rank <n>', 'LoRA rank of the model that is created', positive, 8)
    .option('--critic', 'also try to create a critic')
    .option('--quick', 'create no model: only test address, certificate, key, models and round trip')
    .option('--timeout <s>', 'time limit of the probe in seconds', positive, 300)
    .option('--json', 'print one JSON document on standard output')
    .addHelpText(
      'after',
      `
A model with a new adapter is created on the server, and is unloaded at the end.
Output with --json: {"url", "encrypted", "server", "key", "models", "round_trip_ms", "measured": {…}, "limits": […], …}.`,
    )
    .action((url: string, flags: ProbeFlags) => answer(flags, () => probe(url, flags)));
}

async function probe(url: string, { keyEnv, key, quick, timeout, ...flags }: ProbeFlags): Promise<Answer> {
  const stopped = new AbortController();
  const stop = (): void => stopped.abort(new UserError(`engine: the probe of ${url} was stopped`));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop);
  const report = await probeEngine({
    ...{ url, keyEnv: key ? keyEnv : null, model: flags.model ?? null, rank: flags.rank },
    ...{ critic: flags.critic ?? false, quick: quick ?? false, timeoutS: timeout, signal: stopped.signal },
    onPhase: phase => process.stderr.isTTY && process.stderr.write(`${url}: ${phase} …\n`),
  });
  return { document: report, plainText: engineText(report) };
}

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('use an integer of at least 1.');
  return value;
}
