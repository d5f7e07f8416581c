// `ragen set`: changes settings of a run during training, through its trainer; without arguments, prints the current
// settings.
import type { Command } from 'commander';
import { changeable } from '../../run-data/changeable-settings';
import { UserError } from '../../common/user-error';
import { shown } from '../../trainer/config/config-error';
import { LeaseWatch } from '../../trainer/store/held-lease';
import { RunFolder } from '../../trainer/store/run-folder';
import { requireOwn } from '../../trainer/run/trusted-run';
import { changedConfig } from '../../trainer/run/stored-config';
import { answer } from '../output/answer';
import { changeSettings, joinTrainer } from '../run-lifecycle/follow';
import { withCommon } from '../options/run-options';
import type { CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';

export function addSet(program: Command): void {
  withCommon(program.command('set').description('change settings of a run from its next step on'))
    .argument('<run>', 'id of the run')
    .argument(
      '[settings...]',
      'key=value, such as actor_rollout_ref.actor.optim.lr=1e-6 (without arguments: print the settings that can change)',
    )
    .action((id: string, settings: string[], flags: CommonFlags) =>
      answer(flags, async () => {
        const folder = RunFolder.find(workspaceOf(flags.workspace), id);
        requireOwn(folder);
        if (settings.length > 0) return ask(folder, Object.fromEntries(settings.map(valueOf)));
        const present = changeable(changedConfig(folder));
        return { document: present, plainText: present.map(({ key, value }) => `${key}=${value}`).join('\n') };
      }),
    );
}

async function ask(folder: RunFolder, values: Record<string, number>) {
  const connection = (await new LeaseWatch(folder.path).decide()) ? await joinTrainer(folder) : undefined;
  if (!connection)
    throw new UserError(`run ${folder.id} is not training, so no setting can change: resume it first (ragen resume)`);
  try {
    const { step, changes } = await changeSettings(connection, values);
    const lines = changes.map(({ key, from, to }) => `${key}: ${from} → ${to} from step ${step} on`);
    return { document: { step, changes }, plainText: lines.join('\n') || 'The run already has these settings.' };
  } finally {
    connection.dispose();
  }
}

function valueOf(text: string): [key: string, value: number] {
  const [, key, value] = /^([^=]+)=(.*)$/.exec(text) ?? [];
  if (key === undefined) throw new UserError(`${shown(text)} is not a setting: write key=value`);
  const number = value.trim() === '' ? Number.NaN : Number(value);
  if (!Number.isFinite(number)) throw new UserError(`${key} is ${shown(value)}: use a number`);
  return [key, number];
}
