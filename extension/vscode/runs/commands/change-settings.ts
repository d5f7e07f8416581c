// Changes a setting of a training run: the user selects the setting and types the value. The trainer validates the
// value while the user types it. The change applies from the trainer's next step on.
import * as vscode from 'vscode';
import { isEvaluation } from '../../../run-data/run-progress';
import { changeable, configInEffect } from '../../../run-data/changeable-settings';
import { noRuns, ownRun, takesNoSteps } from './run-checks';
import type { Command } from '../../command';
import { notifyBriefly } from '../../notifications';
import { showInputBox, showQuickPick } from '../../questions';
import type { Run } from '../run-store';
import { isActive } from '../run-format';

/** Display names of the settings by key. */
const names = (): Record<string, string> => ({
  'actor_rollout_ref.actor.optim.lr': vscode.l10n.t('Learning rate'),
  'critic.optim.lr': vscode.l10n.t('Critic learning rate'),
  'actor_rollout_ref.actor.entropy_coeff': vscode.l10n.t('Entropy coefficient'),
  'actor_rollout_ref.actor.kl_loss_coef': vscode.l10n.t('KL coefficient of the loss'),
  'algorithm.kl_ctrl.kl_coef': vscode.l10n.t('KL coefficient of the reward'),
  'actor_rollout_ref.rollout.temperature': vscode.l10n.t('Sampling temperature'),
  'actor_rollout_ref.rollout.rollout_filter_value': vscode.l10n.t('Rollout filter value'),
  'trainer.total_training_steps': vscode.l10n.t('Total training steps'),
  'trainer.test_freq': vscode.l10n.t('Steps between validations'),
  'trainer.save_freq': vscode.l10n.t('Steps between checkpoints'),
});

/** `RAGEN: Change Settings of a Run`. */
export const changeSettings: Command = host => async argument => {
  const trains = (summary: Run['summary']) => ownRun(summary) && isActive(summary) && !isEvaluation(summary.status);
  await host.store.scanned;
  const none =
    host.store.runs.length === 0
      ? noRuns()
      : vscode.l10n.t('No run is training: settings can change only during training.');
  const run = await host.picker.pick(argument, trains, none);
  if (!run || takesNoSteps(run)) return;
  const trainer = host.store.trainer(run);
  const title = vscode.l10n.t('Change Settings of {0}', run.summary.name);
  const setting = await askForSetting(run, title);
  if (!setting) return;
  const { key, value } = setting;
  const refused = async (text: string): Promise<string | undefined> => {
    const number = numberIn(text);
    if (number === undefined) return vscode.l10n.t('Write a number, such as {0}.', String(value));
    try {
      await trainer.change({ [key]: number }, true);
    } catch (error) {
      return (error as Error).message;
    }
    return undefined;
  };
  const text = await showInputBox({
    title,
    prompt: vscode.l10n.t('{0} ({1}). The change applies from the next step on.', names()[key], key),
    value: String(value),
    validateInput: refused,
  });
  const number = text === undefined ? undefined : numberIn(text);
  if (number === undefined) return;
  const { step, changes } = await trainer.change({ [key]: number });
  const message =
    changes.length === 0
      ? vscode.l10n.t('{0} is already {1}.', names()[key], String(number))
      : vscode.l10n.t('{0}: {1} → {2} from step {3} on', names()[key], String(value), String(number), step);
  notifyBriefly(message, 8000, changes.length === 0 ? undefined : 'check');
};

/** Lets the user select one of the settings that have an effect in this run. Returns undefined if the user cancels. */
async function askForSetting(run: Run, title: string): Promise<{ key: string; value: number } | undefined> {
  const { events } = await run.reader.events();
  const items = changeable(configInEffect(run.reader.manifest?.config ?? {}, events)).map(({ key, value }) => ({
    label: names()[key],
    description: String(value),
    detail: key,
    key,
    value,
  }));
  const placeHolder = vscode.l10n.t(
    'Which setting? The change applies from the next step on and is marked in the charts.',
  );
  return showQuickPick(items, { title, placeHolder, matchOnDetail: true });
}

/** Parses a number; undefined if the text is not a number. */
function numberIn(text: string): number | undefined {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : undefined;
}
