// Messages shown in parts of the page that have no data. A message gives the reason. If a configuration override makes
// future runs record the data, the message also shows this override with a copy button.
import { html, nothing, type TemplateResult } from 'lit';
import type { CollapseSettings } from '../../extension/run-data/collapse-settings';
import { button } from '../components/controls';
import type { CollapseActions } from './actions';
import type { Missing } from '../../extension/run-data/interpretation/missing-family';

export function missingGradients({ gradients, gradients_every }: CollapseSettings): Missing {
  if (gradients)
    return {
      text: `No gradients up to this step: the run measures them at step 1 and every ${gradients_every} steps.`,
    };
  return {
    text: 'This run does not measure gradients by bucket. To enable the measurement in the next run, set',
    override: 'trainer.gradient_analysis_mode=true',
  };
}

/** Explains why a step has no prompt groups. */
export const missingGroups = (step: number): Missing =>
  step === 0 ? { text: 'Step 0 is the validation before training: it has no prompt groups.' } : groupsGone;

const groupsGone: Missing = {
  text: 'The episodes of this step are no longer in the run’s folder. To keep the table of groups in future runs, set',
  override: 'trainer.log_group_rv_table=true',
};

/**
 * Renders the message, with the override and a button that copies the override, or with a button that starts a diagnosis
 * of stored rollouts.
 */
export function missingNotice(
  { text, override, diagnose }: Missing,
  { copy, command }: Pick<CollapseActions, 'copy' | 'command'>,
): TemplateResult {
  const offer = (line: string): TemplateResult =>
    html` <code>${line}</code>${button({ label: 'Copy', title: `Copy ${line}`, onClick: () => copy(line) })}`;
  return html`<p class="missing muted"
    >${text}${override === undefined ? nothing : offer(override)}${diagnose ? diagnoseButton(command) : nothing}</p
  >`;
}

/** Renders the button that scores the stored rollouts of another trainer's run under a model. */
export const diagnoseButton = (command: CollapseActions['command']): TemplateResult =>
  button({
    label: 'Diagnose with a model…',
    title: 'Scores the stored rollouts under a model that you name',
    onClick: () => command('diagnose'),
  });
