// Renders the New Run page. A bar on top has the preset and the commands. The form is below the bar, next to the
// estimated resources and the configuration.
import type { NewRunActions } from './actions';
import { html, nothing, type TemplateResult } from 'lit';
import type { FieldGroup, NewRunForm } from '../../extension/protocol/new-run-page';
import { button, dropdown, link } from '../components/controls';
import { notice, skeleton } from '../components/notice';
import { environmentsView } from './environments';
import { estimateView } from './resource-estimate';
import { engineField, fieldLimit, plannedAbilities } from './engine-field';
import { fieldRow } from './field-row';
import { sweepField } from './sweep-field';
import { canStart, emptyPlan, placedProblems, startObstacle, type NewRunState, type PlacedProblems } from './state';

export function newRunView(state: NewRunState, actions: NewRunActions): TemplateResult {
  const { connection, form } = state;
  if (typeof connection === 'object')
    return notice({
      kind: 'error',
      title: 'The configurations could not be read',
      text: connection.failed,
      action: { label: 'Try again', run: actions.connect },
    });
  if (connection === 'connecting' || !form) return skeleton('skeleton-form', 12, 'Loading the configurations');
  return html`${barView(form, state, actions)}
    <div class="form-body">
      ${formView(form, state, actions)}
      <aside>
        <h2>Estimated resources</h2>
        <div aria-live="polite">${estimateView(state.planned, state.waiting)}</div>
        <h2>Configuration</h2>
        <pre
          class="yaml"
          tabindex="0"
          role="region"
          aria-label="The configuration as YAML"
          .textContent=${state.planned?.yaml ?? ''}
        ></pre>
      </aside>
    </div>`;
}

function barView({ presets, folders }: NewRunForm, state: NewRunState, actions: NewRunActions): TemplateResult {
  const { choice, starting } = state;
  const obstacle = startObstacle(state);
  const from = dropdown({
    label: 'Start from',
    choices: presets.map(({ id, name }) => [id, name] as const),
    value: choice.preset,
    onChange: preset => actions.change({ preset, values: {}, overrides: '', groups: null, sweep: null }, true),
  });
  const where = dropdown({
    label: 'Folder of the run',
    choices: folders.map(({ path, name }) => [path, name] as const),
    value: choice.folder,
    onChange: folder => actions.change({ folder }, true),
  });
  return html`<header class="form-bar">
    <h1>New run</h1>
    <label>from ${from}</label>
    ${folders.length > 1 ? html`<label>in ${where}</label>` : nothing}
    <span class="space"></span>
    ${button({ label: 'Save as YAML…', onClick: actions.save })}
    ${obstacle === null ? nothing : html`<span class="obstacle">${link(obstacle.text, actions.start)}</span>`}
    ${button({
      label: starting ? 'Starting …' : choice.sweep ? 'Start sweep' : 'Start run',
      primary: true,
      title: obstacle?.text ?? `Start the ${choice.sweep ? 'sweep' : 'run'} (Ctrl+Enter)`,
      disabled: canStart(state) || obstacle !== null ? false : 'soft', // with an obstacle, a click leads to it
      onClick: actions.start,
    })}
  </header>`;
}

function formView(form: NewRunForm, state: NewRunState, actions: NewRunActions): TemplateResult {
  const { presets, groups } = form;
  const { choice } = state;
  const plan = state.planned ?? emptyPlan;
  const problems = placedProblems(state);
  const [first, ...others] = groups.map(group => groupView(group, form, state, problems, actions));
  return html`<main class="form">
    <p class="muted">${presets.find(({ id }) => id === choice.preset)?.description ?? ''}</p>
    <div class="trouble" role="alert" tabindex="-1"
      >${problems.others.map(text => html`<p class="problem">${text}</p>`)}</div
    >
    ${first}
    ${environmentsView({
      tags: plan.tags,
      groups: choice.groups ?? plan.groups,
      changed: choice.groups !== null,
      problem: problems.ofGroups,
      onChange: next => actions.change({ groups: next }),
    })}
    ${others} ${overridesView(choice.overrides, actions)}
    ${
      choice.preset.startsWith('fork:')
        ? nothing
        : sweepField({
            sweep: choice.sweep,
            fields: groups.flatMap(({ fields }) => fields).filter(({ key }) => !fixedInSweep.includes(key)),
            runs: plan.sweepRuns,
            problem: problems.ofSweep,
            onChange: sweep => actions.change({ sweep }),
          })
    }
  </main>`;
}

/** Keys that a sweep sets itself, or that do not change the training. */
const fixedInSweep = ['seed.train', 'trainer.experiment_name', 'workbench.keep_checkpoints'];

/** Renders the field for keys that have no field of their own. */
function overridesView(overrides: string, { change }: NewRunActions): TemplateResult {
  const state = { value: overrides, known: true, changed: overrides !== '', problem: undefined, limit: undefined };
  const field = {
    ...{ key: 'overrides', title: 'Overrides', kind: 'text' as const, choices: [] },
    help: 'Other keys, as key=value separated by blanks, such as actor_rollout_ref.actor.grad_clip=0.5.',
  };
  return html`<section class="field-group"
    ><h2>Other keys</h2>${fieldRow(field, {
      ...state,
      onChange: text => change({ overrides: text }),
      onReset: () => change({ overrides: '' }, true),
    })}</section
  >`;
}

function groupView(
  { title, fields }: FieldGroup,
  form: NewRunForm,
  { choice, planned }: NewRunState,
  { byKey }: PlacedProblems,
  { change, connectEngine }: NewRunActions,
): TemplateResult {
  const { values, engine } = choice;
  const abilities = plannedAbilities(form, engine, planned?.engine);
  const engineRow = engineField({
    ...{ form, engine, planned: planned?.engine ?? null },
    onChange: name => change({ engine: name }, true),
    onConnect: connectEngine,
  });
  const rows = fields.map(field => {
    const { key, choices } = field;
    const value = values[key] ?? planned?.values[key] ?? '';
    const problem = byKey.get(key);
    const limit = abilities && problem === undefined ? fieldLimit(key, value, choices, abilities) : undefined;
    return fieldRow(field, {
      ...{ value, changed: key in values, problem, limit, known: planned !== null || key in values },
      onChange: value => change({ values: { ...values, [key]: value } }),
      onReset() {
        const { [key]: _, ...rest } = values;
        change({ values: rest }, true);
      },
    });
  });
  return html`<section class="field-group"
    ><h2>${title}</h2>${fields.some(({ key }) => key === 'model_path') ? engineRow : nothing}${rows}</section
  >`;
}
