// Options that the terminal's model commands share, and the parsing of numbers on the command line: a value out of range is
// refused with the option's name before anything is read.
import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';

/** Parser of an option that takes a whole number in [least, most]. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return text => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(
        `Give a whole number from ${least}${most < Number.MAX_SAFE_INTEGER ? ` to ${most}` : ''}.`,
      );
    return value;
  };
}

/** Parser of an option that takes a number for which `fits` holds; `range` says which those are. */
export function number(fits: (value: number) => boolean, range: string): (text: string) => number {
  return text => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isFinite(value) || !fits(value))
      throw new InvalidArgumentError(`Give a number ${range}.`);
    return value;
  };
}

export const devices = ['auto', 'cpu', 'webgpu', 'cuda'] as const;

/** Adds --model, --input, --adapter, --device, --threads and --json. */
export function withModelOptions(command: Command): Command {
  return command
    .requiredOption('--model <folder>', 'folder in Hugging Face’s form, or the name of a model that comes along')
    .requiredOption('--input <file>', 'JSON array or JSON lines; - is standard input')
    .option('--adapter <folder>', 'LoRA adapter in PEFT’s form, laid over the model')
    .option('--device <name>', `where the model runs: ${devices.join(', ')}`, 'cpu')
    .option('--threads <count>', 'threads on the CPU; 0 is one a core', wholeNumber(0, 1024), 0)
    .option('--json', 'print one JSON document on standard output, logs on standard error');
}
