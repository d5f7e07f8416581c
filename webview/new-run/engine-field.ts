// The engine of a run: this machine or a server from the user's list. If the user chooses a server, the form disables
// each setting that the server ignores or for which it supports only one value. For other settings, the form disables
// the values that the server does not support. The reason is next to the control. The trainer applies the same rules
// (run-data/engine-limits.ts).
import { html, type TemplateResult } from 'lit';
import type { NewRunForm, PlannedRun } from '../../extension/protocol/new-run-page';
import {
  ignoredByEngine,
  limitsOf,
  permits,
  unmeasured,
  type EngineAbilities,
} from '../../extension/run-data/engine-limits';
import { dropdown } from '../components/controls';

/** The limits that an engine sets for one field of the form. */
export interface FieldLimit {
  /** Whether the control is disabled. */
  disabled: boolean;
  /** Choices that cannot be selected. */
  disabledChoices: readonly string[];
  reason: string;
}

/** Value of the choice that connects to a further engine; no engine has this name. */
const connectValue = '\n';

export interface EngineFieldState {
  form: NewRunForm;
  /** Name of the chosen engine; empty for the preset's engine. */
  engine: string;
  planned: PlannedRun['engine'];
  onChange(engine: string): void;
  onConnect(): void;
}

/** Renders the row of the form that selects the engine. */
export function engineField({ form, engine, planned, onChange, onConnect }: EngineFieldState): TemplateResult {
  const chosen = form.engines.find(({ name }) => name === engine);
  const preset = !chosen && planned ? `As configured: ${planned.url}` : 'This machine';
  const control = dropdown({
    label: 'Engine (workbench.engine)',
    choices: [
      ['', preset] as const,
      ...form.engines.map(({ name }) => [name, name] as const),
      [connectValue, 'Connect to engine …'] as const,
    ],
    value: engine,
    onChange: name => (name === connectValue ? onConnect() : onChange(name)),
  });
  const about = chosen
    ? `${chosen.url} · ${chosen.about}`
    : 'Where the model samples and trains: on this machine, or on a server that speaks the Tinker REST API.';
  return html`<div class=${chosen ? 'field changed' : 'field'} data-key="workbench.engine">
    <div class="field-name"><span>Engine</span><code class="muted">workbench.engine</code></div>
    <div class="field-control">${control}</div>
    <p class="field-help muted">${about}</p>
  </div>`;
}

/** Returns the abilities of the server on which the run would sample and train; null for this machine. */
export function plannedAbilities(
  form: NewRunForm,
  engine: string,
  planned: PlannedRun['engine'] | undefined,
): EngineAbilities | null {
  const chosen = form.engines.find(({ name }) => name === engine);
  return chosen?.abilities ?? (planned ? unmeasured : null);
}

/**
 * Returns the limits that a server sets for a configuration key with the current value `value`; undefined if the server
 * sets no limit.
 */
export function fieldLimit(
  key: string,
  value: string,
  choices: readonly string[],
  abilities: EngineAbilities,
): FieldLimit | undefined {
  const ignored = ignoredByEngine.find(entry => entry.key === key);
  if (ignored) return { disabled: true, disabledChoices: [], reason: `${ignored.reason}; this setting has no effect.` };
  const limits = limitsOf(abilities).filter(entry => entry.key === key);
  for (const { supported, reason } of limits)
    if ('only' in supported)
      return value === String(supported.only)
        ? { disabled: true, disabledChoices: [], reason: `${reason}.` }
        : undefined;
  const disabledChoices = choices.filter(choice => limits.some(limit => !permits(limit, choice)));
  const reasons = limits.filter(limit => choices.some(choice => !permits(limit, choice))).map(({ reason }) => reason);
  return disabledChoices.length === 0
    ? undefined
    : { disabled: false, disabledChoices, reason: `${reasons.join('. ')}.` };
}
