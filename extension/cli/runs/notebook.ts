// `ragen notebook RUN`: writes a Jupyter notebook that reads the run with pandas.
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { notebookText } from '../../run-data/notebook';
import { RunFolder } from '../../trainer/store/run-folder';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer } from '../output/answer';

interface NotebookFlags extends CommonFlags {
  out?: string;
  force?: boolean;
}

export function addNotebook(program: Command): void {
  withCommon(program.command('notebook').description('write a Jupyter notebook that reads a run with pandas'))
    .argument('<run>', 'id of the run')
    .option('--out <file>', 'file to write (default: <run>.ipynb)')
    .option('--force', 'replace an existing file')
    .addHelpText('after', '\nThe notebook needs pandas and matplotlib. Output with --json: {"file"}.')
    .action((run: string, flags: NotebookFlags) =>
      answer(flags, async () => {
        const workspace = workspaceOf(flags.workspace);
        const folder = RunFolder.find(workspace, run);
        const { id, manifest, path } = folder;
        const file = resolve(workspace, flags.out ?? `${id}.ipynb`);
        const { name = manifest.name } = folder.readLabels();
        try {
          writeFileSync(file, notebookText({ id, name, folder: path }), { flag: flags.force ? 'w' : 'wx' });
        } catch (error) {
          const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
          throw new UserError(
            exists
              ? `notebook: ${file} already exists: give another --out, or --force to replace it`
              : `notebook: ${file} cannot be written (${(error as Error).message}): give another --out`,
          );
        }
        return { document: { file }, plainText: file };
      }),
    );
}
