// The Collapse page: whether the model's reasoning still depends on its prompt. This file owns the snapshot, the lines
// appended to it, the selected step and family, and the data fetched for them. Each part draws itself.
import {
  collapseCommand,
  collapseFamilyAt,
  collapseLines,
  collapseReady,
  gradientsAt,
  groupsAt,
  type CollapseSnapshot,
} from '../../extension/protocol/collapse-page';
import { meaningOf } from '../../extension/run-data/metric-meanings';
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { messageOf, type Host } from '../shared/host';
import { onKeys } from '../shared/keyboard';
import { notice, skeleton } from '../shared/notices';
import { colourOfRun } from '../shared/palette';
import { statusDot } from '../shared/run-status';
import { viewState } from '../shared/state';
import { onThemeChange, readTheme, type Theme } from '../shared/theme';
import { button } from '../shared/toolkit';
import { alarmList } from './alarm-list';
import { familyCharts, signalCharts } from './charts';
import { circumstancesAt, evidenceOf, evidenceUpTo } from './evidence';
import { filterAt } from './format-filter';
import { gradientsView } from './gradients';
import { groupsView } from './groups';
import { lineChart, type LineChart } from './line-chart';
import { matrixView } from './matrix';
import { plane } from './plane';
import { interpret } from './interpretation';
import { interpretationView } from './interpretation-view';
import { families, pathOf, reached, RunSeries, type FamilyName, type PathPoint } from './run-series';
import { scrubber } from './scrubber';
import { StepFetcher } from './step-fetcher';
import { missingFamily, missingGradients, missingGroups, missingNotice, type Missing } from './switched-off';
import { firstView, viewSchema } from './view';

export function startCollapse(host: Host, root: HTMLElement): void {
  const state = viewState(host, viewSchema, firstView);
  const series = new RunSeries();
  let snapshot: CollapseSnapshot | null = null;
  let path: PathPoint[] = [];
  let theme = readTheme();
  let evidence = evidenceOf(series, '');
  let charts: LineChart[] = [];
  let drawing = false;

  const go = (step: number | null) => {
    state.change({ step });
    drawSoon(false);
  };
  const watched = signalCharts.map(spec => lineChart(spec, go));
  let watchedVersion = -1;
  const openEpisode = (id: string) => host.notify(collapseCommand, { command: 'episode', step: episodeStep(id), id });
  const copy = (text: string) => host.notify(collapseCommand, { command: 'copy', text });

  const name = h('h1', {});
  const dot = statusDot();
  const choices = families.map(({ name: family, label, title }) => {
    const choice = h('button', { class: 'choice', type: 'button', title }, label);
    choice.addEventListener('click', () => {
      state.change({ family });
      drawSoon(true);
    });
    return { family, choice };
  });
  const scrub = scrubber(go);
  const hero = plane(go);
  const interpretation = interpretationView(anchor => host.notify(collapseCommand, { command: 'explain', anchor }), go);
  const heroSlot = h('div', { class: 'hero-place' }, hero.element);
  const overTraining = h('div', { class: 'small-charts' });
  const signals = h('div', { class: 'small-charts' });
  const views = { matrix: matrixView(openEpisode), groups: groupsView(openEpisode), gradients: gradientsView() };
  const matrix = part(
    'Cross-scoring: which prompt each reasoning text fits',
    'matrix-part',
    views.matrix.element,
    copy,
  );
  const groups = part('Prompt groups: score deviation and filtering', 'groups-part', views.groups.element, copy);
  const gradients = part('Gradients by reward deviation', 'gradients-part', views.gradients.element, copy);
  const alarms = h('div', {});
  const layout = [
    h(
      'header',
      { class: 'collapse-bar' },
      h(
        'div',
        { class: 'bar-row' },
        name,
        dot.element,
        h(
          'div',
          { class: 'choices', role: 'group', 'aria-label': 'Pairs of prompt and reasoning' },
          ...choices.map(({ choice }) => choice),
        ),
        h(
          'div',
          { class: 'buttons' },
          button({ label: 'Dashboard', onClick: () => host.notify(collapseCommand, { command: 'dashboard' }) }),
          button({ label: 'Episodes', onClick: () => host.notify(collapseCommand, { command: 'episodes' }) }),
        ),
      ),
      scrub.element,
    ),
    h(
      'main',
      { class: 'collapse-body' },
      h('div', { class: 'hero' }, heroSlot, interpretation.element),
      section('Over training', overTraining),
      matrix.element,
      groups.element,
      gradients.element,
      section('Echo Trap signals, with alarm thresholds', signals),
      section('Alarms', alarms),
    ),
  ];

  const fetchers = {
    matrix: new StepFetcher(
      (key: { step: number; family: FamilyName }) => host.request(collapseFamilyAt, key),
      ({ step, family }, found) => {
        if (!found) return matrix.miss(missingFamily(snapshot!.settings, family));
        matrix.show(step);
        views.matrix.draw(found, theme);
      },
      matrix.fail,
    ),
    groups: new StepFetcher(
      (key: { step: number }) => host.request(groupsAt, key),
      ({ step }, found) => {
        if (!found) return groups.miss(missingGroups);
        groups.show(step);
        views.groups.draw(found, filterAt(snapshot!.settings.filter, snapshot!.events, step));
      },
      groups.fail,
    ),
    gradients: new StepFetcher(
      (key: { step: number }) => host.request(gradientsAt, key),
      ({ step }, found) => {
        if (!found) return gradients.miss(missingGradients(snapshot!.settings));
        gradients.show(step);
        views.gradients.draw(found);
      },
      gradients.fail,
    ),
  };

  function load(): void {
    if (!snapshot) replaceChildren(root, skeleton('skeleton-collapse', 4, 'Loading the diagnoses'));
    host.request(collapseReady, null).then(take, error => {
      const again = { label: 'Try again', run: load };
      replaceChildren(
        root,
        notice({ kind: 'error', title: 'The run could not be read', text: messageOf(error), action: again }),
      );
      snapshot = null;
    });
  }

  function take(next: CollapseSnapshot): void {
    snapshot = next;
    series.load(next);
    state.keepFolder(next.run.folder);
    for (const fetcher of Object.values(fetchers)) fetcher.forget();
    if (series.steps.length > 0 && layout[0].parentElement !== root) replaceChildren(root, ...layout);
    drawSoon(true);
  }

  /** Draws once for all updates in a frame; `anew` if the series or the family changed, not only the step. */
  let anewNext = false;
  function drawSoon(anew: boolean): void {
    anewNext ||= anew;
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (snapshot) draw(snapshot, anewNext);
      anewNext = false;
    });
  }

  function draw(now: CollapseSnapshot, anew: boolean): void {
    if (series.steps.length === 0 || now.run.status.episodes) return showEmpty(now);
    if (layout[0].parentElement !== root) replaceChildren(root, ...layout);
    const { settings, run } = now;
    const { family } = state.value;
    const newest = series.steps[series.steps.length - 1];
    const live = state.value.step === null || state.value.step >= newest;
    const step = live ? newest : series.steps[Math.max(0, series.rowAt(state.value.step ?? newest))];
    if (anew) {
      path = pathOf(series, family);
      evidence = evidenceOf(series, family, path);
      setText(name, run.name);
      setAttribute(name, 'title', run.id);
      dot.update(run);
      for (const { family: other, choice } of choices) setAttribute(choice, 'aria-pressed', String(other === family));
      paint(theme, run.id);
      drawCharts(family, now);
    }
    const present = reached(path, step) - 1;
    scrub.update(
      series.steps,
      path.map(point => point.step),
      step,
      live,
    );
    if (path.length === 0) replaceChildren(heroSlot, missingNotice(missingFamily(settings, family), copy));
    else if (hero.element.parentElement !== heroSlot) replaceChildren(heroSlot, hero.element);
    hero.draw(path, present);
    interpretation.draw(interpret(evidenceUpTo(evidence, step, circumstancesAt(now, step))));
    for (const chart of charts) chart.look(step);
    replaceChildren(alarms, alarmList(now.events, step, settings.watch, go));
    fetchParts(now, family, step, present);
  }

  function drawCharts(family: FamilyName, { meanings }: CollapseSnapshot): void {
    const meaning = (key: string) => meaningOf(meanings, key);
    const specs = familyCharts(family, series, path).filter(
      ({ lines }) => path.length > 0 || lines.some(({ key }) => !key.startsWith(family)),
    );
    const ofFamily = specs.map(spec => lineChart(spec, go));
    charts = [...ofFamily, ...watched];
    for (const chart of ofFamily) chart.draw(series, meaning);
    replaceChildren(overTraining, ...ofFamily.map(({ element }) => element));
    if (watchedVersion === series.version) return; // these charts do not depend on the family
    watchedVersion = series.version;
    for (const chart of watched) chart.draw(series, meaning);
    replaceChildren(signals, ...watched.map(({ element }) => element));
  }

  /** Fetches the data stored in one file per step, unless it is present already. */
  function fetchParts(
    { settings, diagnosed }: CollapseSnapshot,
    family: FamilyName,
    step: number,
    present: number,
  ): void {
    const diagnosedAt = path[present] as PathPoint | undefined;
    const measured = diagnosed.gradients.findLast(at => at <= step);
    fetchers.matrix.ask(diagnosedAt ? { step: diagnosedAt.step, family } : null);
    fetchers.gradients.ask(measured === undefined ? null : { step: measured });
    fetchers.groups.ask(step > 0 ? { step } : null);
    matrix.element.hidden = path.length === 0; // the plane shows the reason
    if (!diagnosedAt) matrix.miss(missingFamily(settings, family));
    if (measured === undefined) gradients.miss(missingGradients(settings));
    if (step === 0) groups.miss({ text: 'Step 0 is the validation before training: it has no prompt groups.' });
  }

  function showEmpty({ run }: CollapseSnapshot): void {
    const { episodes, error, phase, state: at } = run.status;
    const text = episodes
      ? 'Collapse is an effect of training, and an evaluation does not train. See its episodes on the Episodes page, and the Collapse page of the run that trained the model.'
      : run.live
        ? `${run.name} is running (${phase || at}). The first diagnosis appears after step 1.`
        : (error ?? 'The run ended before its first step was finished.');
    const action = { label: 'Open the dashboard', run: () => host.notify(collapseCommand, { command: 'dashboard' }) };
    replaceChildren(
      root,
      notice({
        kind: error && !episodes ? 'error' : 'empty',
        title: episodes ? 'Nothing to diagnose' : 'No step has finished yet',
        text,
        action,
      }),
    );
  }

  host.onNotify(collapseLines, ({ run, lines, events, diagnosed, checkpoints }) => {
    if (!snapshot) return; // the pending snapshot includes them
    snapshot = { ...snapshot, run, events: [...snapshot.events, ...events], diagnosed, checkpoints };
    series.append(lines);
    if (lines.length > 0 || events.length > 0) drawSoon(true);
    else dot.update(run);
  });
  onThemeChange(changed => {
    theme = changed;
    drawSoon(true);
    fetchers.matrix.again();
  });
  onKeys(document, {
    ArrowLeft: () => scrub.move(-1),
    ArrowRight: () => scrub.move(1),
    Home: () => series.steps.length > 0 && go(path[0]?.step ?? series.steps[0]),
    End: () => go(null),
    ' ': () => scrub.togglePlay(),
  });
  // A hidden page receives no messages, so it loads a new snapshot.
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') load();
  });
  load();
}

/** Sets the data colours as CSS variables, for SVG and bars. */
function paint({ palette, warning }: Theme, runId: string): void {
  const { style } = document.documentElement;
  const set = (property: string, value: string) => {
    if (style.getPropertyValue(property) !== value) style.setProperty(property, value);
  };
  palette.forEach((colour, i) => set(`--c${i}`, colour));
  set('--run', palette[colourOfRun(runId)]);
  set('--alarm', warning);
}

/** The training step in an episode's id: `train-000060-g015-m00`. */
const episodeStep = (id: string): number => Number(/^train-(\d+)-/.exec(id)?.[1] ?? NaN);

const section = (title: string, ...children: HTMLElement[]): HTMLElement =>
  h('section', { class: 'part' }, h('h2', {}, title), ...children);

interface Part {
  element: HTMLElement;
  /** Shows the part's view with its step. */
  show(step: number): void;
  miss(missing: Missing): void;
  fail(key: { step: number }, error: unknown): void;
}

/** A part of the page that shows the file of one step. */
function part(title: string, className: string, view: HTMLElement, copy: (text: string) => void): Part {
  const where = h('span', { class: 'muted at' });
  const body = h('div', {});
  return {
    element: h('section', { class: `part ${className}` }, h('h2', {}, title, where), body),
    show(step) {
      setText(where, `step ${step}`);
      if (view.parentElement !== body) replaceChildren(body, view);
    },
    miss(missing) {
      setText(where, '');
      replaceChildren(body, missingNotice(missing, copy));
    },
    fail({ step }, error) {
      setText(where, `step ${step}`);
      replaceChildren(body, h('p', { role: 'alert' }, messageOf(error)));
    },
  };
}
