// The files of RAGEN's `config/` folder as this repository's tests have them: its keys, values and lists of defaults, with comments left
// out and instructions of environments in other words.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

export const ragenFolder = join(import.meta.dirname ?? __dirname, 'ragen-files/config');
/** Their names, without `.yaml`. */
export const ragenNames: readonly string[] = readdirSync(ragenFolder)
  .map(file => file.replace(/\.yaml$/, ''))
  .sort();
