// The files of RAGEN's `config/` folder, copied into this repository's tests: keys, values and lists of defaults,
// without comments and with rephrased environment instructions.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

export const ragenFolder = join(import.meta.dirname ?? __dirname, '../../../golden/ragen-config');
/** Names of the files, without `.yaml`. */
export const ragenNames: readonly string[] = readdirSync(ragenFolder)
  .map(file => file.replace(/\.yaml$/, ''))
  .sort();
