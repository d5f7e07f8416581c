// Options that the model commands share, and parsers for option values. The parsers run before any file is read; for an
// invalid value, they throw an error that names the option and its valid values.
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { devices } from '../../engine/session/devices';
import type { Device } from '../../engine/session/devices';

/** Parses an option's text. Throws a UserError. */
export type Parse<T> = (text: string) => T;

/** Parses an integer in [least, most]. */
export function wholeNumber(option: string, least: number, most = Number.MAX_SAFE_INTEGER): Parse<number> {
  return text => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const range = most < Number.MAX_SAFE_INTEGER ? `from ${least} to ${most}` : `from ${least}`;
    throw new UserError(`${option} is ${JSON.stringify(text)}: give a whole number ${range}`);
  };
}

/** Parses a number for which `fits` returns true; `range` describes the valid numbers. */
export function number(option: string, fits: (value: number) => boolean, range: string): Parse<number> {
  return text => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isFinite(value) && fits(value)) return value;
    throw new UserError(`${option} is ${JSON.stringify(text)}: give a number ${range}`);
  };
}

/** Parses the name of a device. */
export const device: Parse<Device> = text => {
  const found = devices.find(name => name === text);
  if (found) return found;
  throw new UserError(`--device is ${JSON.stringify(text)}: use one of ${devices.join(', ')}`);
};

/** Adds --model, --input, --adapter, --device, --threads and --json. */
export function withModelOptions(command: Command): Command {
  return command
    .requiredOption(
      '--model <model>',
      'folder in Hugging Face format, hub model (organisation/name), or the name of a bundled model',
    )
    .requiredOption('--input <file>', 'JSON array or JSON lines; - is standard input')
    .option('--adapter <folder>', 'LoRA adapter in PEFT format, applied to the model')
    .option('--device <name>', `where the model runs: ${devices.join(', ')}`, device, 'cpu')
    .option('--threads <count>', 'threads on the CPU; 0 for one per core', wholeNumber('--threads', 0, 1024), 0)
    .option('--json', 'print one JSON document on standard output, logs on standard error');
}
