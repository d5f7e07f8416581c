// The New Run page: a preset to start from, the important keys, the estimated resources, and the resulting
// configuration. The page owns the user's choices and keeps them across a reload; everything else comes from the
// trainer's plan.
import {
  newRunPlan,
  newRunReady,
  newRunSave,
  newRunStart,
  type NewRunChoice,
  type NewRunForm,
  type PlannedRun,
} from '../../extension/protocol/new-run-page';
import { h, replaceChildren, setText } from '../shared/dom';
import { messageOf, type Host } from '../shared/host';
import { notice, skeleton } from '../shared/notices';
import { viewState } from '../shared/state';
import { button, dropdown } from '../shared/toolkit';
import { Environments } from './environments';
import { estimateView } from './estimate';
import { FieldRow, fieldSection } from './field-row';

const viewSchema = 1;
/** Milliseconds after the last change before a new plan is requested. */
const settleMs = 350;

const nothing: NewRunChoice = { preset: '', folder: '', values: {}, groups: null };

/** Starts the page in `root`. */
export function startNewRun(host: Host, root: HTMLElement): void {
  const state = viewState<NewRunChoice>(host, viewSchema, nothing);
  const rows = new Map<string, FieldRow>();
  const environments = new Environments(groups => change({ groups }));
  const yaml = h('pre', { class: 'yaml', tabindex: 0, 'aria-label': 'The configuration as YAML' });
  const estimate = h('div', { 'aria-live': 'polite' });
  const trouble = h('div', { class: 'trouble', role: 'alert' });
  const description = h('p', { class: 'muted' });
  const start = button({ label: 'Start run', primary: true, title: 'Start the run (Ctrl+Enter)', onClick: begin });
  let form: NewRunForm | null = null;
  let planned: PlannedRun | null = null;
  /** Error of a failed start, cleared by the next change. */
  let refused = '';
  let asked = 0;
  let waiting = false;
  let starting = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  document.addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) begin();
  });
  load();

  function load(): void {
    replaceChildren(root, skeleton('skeleton-charts', 6, 'Loading the configurations'));
    host.request(newRunReady, null).then(take, error => {
      const action = { label: 'Try again', run: load };
      replaceChildren(
        root,
        notice({ kind: 'error', title: 'The configurations could not be read', text: messageOf(error), action }),
      );
    });
  }

  function take(now: NewRunForm): void {
    form = now;
    const { preset, folder } = state.value;
    const known = now.presets.some(({ id }) => id === preset);
    const there = now.folders.some(({ path }) => path === folder);
    state.change({
      ...(!known && { preset: now.presets[0]?.id ?? '', values: {}, groups: null }),
      ...(!there && { folder: now.folders[0]?.path ?? '' }),
    });
    build(now);
    plan();
  }

  function build({ presets, folders, groups }: NewRunForm): void {
    const sections = groups.map(({ title, fields }) => {
      const own = fields.map(field => {
        const row = new FieldRow(field, {
          onChange: value => setValue(field.key, value),
          onReset: () => unset(field.key),
        });
        rows.set(field.key, row);
        return row;
      });
      return fieldSection(title, own);
    });
    const from = dropdown({
      label: 'Start from',
      choices: presets.map(({ id, name }) => [id, name] as const),
      value: state.value.preset,
      onChange: preset => change({ preset, values: {}, groups: null }, true),
    });
    const where = dropdown({
      label: 'Folder of the run',
      choices: folders.map(({ path, name }) => [path, name] as const),
      value: state.value.folder,
      onChange: folder => change({ folder }, true),
    });
    const [first, ...others] = sections;
    replaceChildren(
      root,
      h(
        'header',
        { class: 'form-bar' },
        h('h1', {}, 'New run'),
        h('label', {}, 'from ', from),
        folders.length > 1 && h('label', {}, 'in ', where),
        h('span', { class: 'space' }),
        button({ label: 'Save as YAML…', onClick: () => host.notify(newRunSave, state.value) }),
        start,
      ),
      h(
        'div',
        { class: 'form-body' },
        h('main', { class: 'form' }, description, trouble, first, environments.element, ...others),
        h('aside', {}, h('h2', {}, 'Estimated resources'), estimate, h('h2', {}, 'Configuration'), yaml),
      ),
    );
    show();
  }

  function setValue(key: string, value: string): void {
    change({ values: { ...state.value.values, [key]: value } });
  }

  function unset(key: string): void {
    const { [key]: _, ...values } = state.value.values;
    change({ values }, true);
  }

  function change(part: Partial<NewRunChoice>, now = false): void {
    state.change(part);
    refused = '';
    waiting = true;
    clearTimeout(timer);
    if (now) plan();
    else timer = setTimeout(plan, settleMs);
    show();
  }

  /** Requests a plan of the choices; only the latest of several pending requests counts. */
  function plan(): void {
    const mine = ++asked;
    waiting = true;
    show();
    host
      .request(newRunPlan, state.value)
      .catch((error: unknown): PlannedRun => ({
        ...(planned ?? { values: {}, tags: [], groups: { train: {}, val: {} }, yaml: '' }),
        estimate: null,
        problems: [{ key: '', message: messageOf(error) }],
      }))
      .then(answer => {
        if (mine !== asked) return;
        planned = answer;
        waiting = false;
        show();
      });
  }

  function begin(): void {
    if (starting || !form || (planned?.problems.length ?? 0) > 0) return;
    starting = true;
    show();
    host
      .request(newRunStart, state.value)
      .catch((error: unknown) => (refused = messageOf(error)))
      .finally(() => {
        starting = false;
        show();
      });
  }

  function show(): void {
    if (!form) return;
    const { values, groups, preset } = state.value;
    const problems = planned?.problems ?? [];
    const claimed = new Set<string>();
    const problemOf = (key: string): string | undefined => {
      const own = problems.find(problem => problem.key === key);
      if (own) claimed.add(own.message);
      return own?.message;
    };
    for (const [key, row] of rows) row.show(values[key] ?? planned?.values[key] ?? '', key in values, problemOf(key));
    const ofGroups = problems.find(({ key }) => /^es_manager\.(train|val)\.(env_groups|env_configs)/.test(key));
    if (ofGroups) claimed.add(ofGroups.message);
    const { tags, groups: present } = planned ?? { tags: [], groups: { train: {}, val: {} } };
    environments.show(tags, groups ?? present, groups !== null, ofGroups?.message);
    const rest = [...problems.map(({ message }) => message).filter(message => !claimed.has(message)), refused];
    replaceChildren(trouble, ...rest.filter(text => text !== '').map(text => h('p', { class: 'problem' }, text)));
    setText(description, form.presets.find(({ id }) => id === preset)?.description ?? '');
    replaceChildren(estimate, estimateView(planned?.estimate ?? null, waiting));
    setText(yaml, planned?.yaml ?? '');
    start.toggleAttribute('disabled', starting || problems.length > 0);
    setText(start, starting ? 'Starting …' : 'Start run');
  }
}
