// Messages shown in parts of the page that have no data. A message gives the reason. If a configuration override makes
// future runs record the data, the message also shows this override with a copy button.
import { html, nothing, type TemplateResult } from 'lit';
import type { CollapseSettings } from '../../extension/protocol/collapse-page';
import { button } from '../components/controls';
import type { FamilyName } from './trends/run-series';

export interface Missing {
  text: string;
  /** The configuration override that makes future runs record the data; undefined if no override is needed. */
  override?: string;
}

const familyKeys: Record<FamilyName, [on: (settings: CollapseSettings) => boolean, override: string]> = {
  collapse_first_turn_sample: [s => s.first_turn, 'collapse_detection.first_turn_enabled=true'],
  collapse_trajectory_sample: [s => s.multi_turn, 'collapse_detection.multi_turn_enabled=true'],
  collapse_turn_sample: [s => s.turn_uniform, 'workbench.collapse_turn_uniform=true'],
};

/** Explains why no matrix of a family exists up to the selected step. */
export function missingFamily(settings: CollapseSettings, family: FamilyName): Missing {
  const [isOn, override] = familyKeys[family];
  if (settings.context_window_mode !== 'full')
    return {
      text: `A run with agent_proxy.context_window_mode ${settings.context_window_mode} cannot be diagnosed, because the diagnosis needs the complete chat. To enable the diagnosis in the next run, set`,
      override: 'agent_proxy.context_window_mode=full',
    };
  if (!isOn(settings))
    return { text: 'This run does not diagnose these turns. To enable the diagnosis in the next run, set', override };
  return {
    text: `No diagnosis up to this step: the run makes one at step 1 and at every ${settings.compute_freq}${ordinal(settings.compute_freq)} step.`,
  };
}

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

/** Renders the message, with the override and a button that copies the override. */
export function missingNotice({ text, override }: Missing, copy: (text: string) => void): TemplateResult {
  const offer = (line: string): TemplateResult =>
    html` <code>${line}</code>${button({ label: 'Copy', title: `Copy ${line}`, onClick: () => copy(line) })}`;
  return html`<p class="missing muted">${text}${override === undefined ? nothing : offer(override)}</p>`;
}

const ordinal = (n: number): string => {
  const tens = n % 100;
  if (tens >= 11 && tens <= 13) return 'th';
  return { 1: 'st', 2: 'nd', 3: 'rd' }[n % 10] ?? 'th';
};
