// Renders the Sweep page: its bar, the grid of arms and seeds, and the paired difference of two arms.
import { html, nothing, type TemplateResult } from 'lit';
import type { SweepSnapshot } from '../../extension/protocol/sweep-page';
import { bestOf } from '../../extension/run-data/table-columns';
import { metricsOf } from '../compare/compared-metrics';
import { button, dropdown } from '../components/controls';
import { notice, skeleton } from '../components/notice';
import { counted } from '../shared/format';
import { latest } from '../shared/memoize-latest';
import type { SweepPageActions } from './actions';
import { armsOf, differenceOf, seedsOf, type Arm } from './arms';
import { differenceView } from './difference-view';
import { standingOf, sweepGrid } from './grid';
import type { SweepState } from './state';

const metricsFor = latest(metricsOf);
const armsFor = latest(armsOf);
const difference = latest((arms: readonly Arm[], base: string, other: string, isLowerBetter: boolean) =>
  differenceOf(arms, { base, other }, isLowerBetter),
);

export function sweepView(state: SweepState, actions: SweepPageActions): TemplateResult {
  const { connection, snapshot, settings } = state;
  if (typeof connection === 'object')
    return notice({
      kind: 'error',
      title: 'The sweep could not be read',
      text: connection.failed,
      action: { label: 'Try again', run: actions.load },
    });
  if (connection === 'planning')
    return notice({
      kind: 'empty',
      title: 'Checking the configurations of the sweep',
      text: 'The runs appear here as soon as all configurations are checked. The terminal shows errors.',
    });
  if (!snapshot) return skeleton('skeleton-sweep', 4, 'Loading the sweep');
  const arms = armsFor(snapshot, settings.at, settings.unfinished);
  const metric = metricsFor(snapshot.keys, snapshot.meanings).find(({ key }) => key === snapshot.metric);
  const between = difference(arms, settings.base, settings.other, bestOf(snapshot.metric) === 'lowest');
  return html`<main class="sweep-page">
    ${topBar(snapshot, arms, state, actions)}
    <div class="grid-scroll" tabindex="0" role="region" aria-label="Runs of the sweep"
      >${sweepGrid(arms, seedsOf(snapshot), metric, settings.at, actions)}</div
    >
    ${between ? differenceView(arms, between, metric?.unit ?? 'number', actions) : nothing}
  </main>`;
}

function topBar(
  snapshot: SweepSnapshot,
  arms: readonly Arm[],
  { requested, problem, settings }: SweepState,
  actions: SweepPageActions,
): TemplateResult {
  const metrics = metricsFor(snapshot.keys, snapshot.meanings);
  const { isRunning, metric } = snapshot;
  const isComplete = standings(arms).every(({ standing }) => standing === 'finished' || standing === 'stopped early');
  return html`<header class="sweep-bar">
    <div class="sweep-row">
      <h1>Sweep ${snapshot.id}</h1>
      ${
        isRunning
          ? button({
              label: requested === 'stop' ? 'Stopping…' : 'Stop',
              icon: 'stop',
              title: 'Stop all runs after their current step, with a checkpoint',
              disabled: requested === 'stop' ? 'soft' : false,
              onClick: () => actions.control('stop'),
            })
          : button({
              label: requested === 'continue' ? 'Continuing…' : 'Continue',
              icon: 'play',
              primary: true,
              title: 'Resume interrupted runs, try failed runs again, and start the rest',
              hidden: isComplete,
              disabled: requested === 'continue' ? 'soft' : false,
              onClick: () => actions.control('continue'),
            })
      }
      ${button({ label: 'Compare curves', icon: 'chart', onClick: actions.openComparison })}
      ${button({ label: 'Open file', onClick: actions.openFile })}
    </div>
    <p class="muted" role="status">${statusOf(snapshot, arms)}</p>
    ${problem === null ? nothing : html`<p class="sweep-problem" role="alert">${problem}</p>`}
    <div class="sweep-row">
      ${
        metrics.length === 0
          ? nothing
          : dropdown({
              label: 'Metric',
              choices: metrics.map(({ key, title, sectionTitle }) => [key, `${title} (${sectionTitle})`] as const),
              value: metric,
              onChange: actions.chooseMetric,
            })
      }
      ${dropdown({
        label: 'Value of each run',
        choices: [
          ['last', 'last value'],
          ['best', 'best value'],
        ],
        value: settings.at,
        onChange: at => actions.choose({ at }),
      })}
      ${button({
        label: 'Count unfinished runs',
        title: 'Let runs that have not finished count in the results',
        pressed: settings.unfinished,
        onClick: () => actions.choose({ unfinished: !settings.unfinished }),
      })}
    </div>
  </header>`;
}

const standings = (arms: readonly Arm[]) =>
  arms.flatMap(arm =>
    arm.cells.flatMap(cell => (cell ? [{ standing: standingOf(arm, cell), live: cell.run?.live }] : [])),
  );

/** Returns the progress of the sweep in one line. */
export function statusOf({ isRunning, jobs, rungs }: SweepSnapshot, arms: readonly Arm[]): string {
  const all = standings(arms);
  const count = (...wanted: string[]): number => all.filter(({ standing }) => wanted.includes(standing)).length;
  const finished = count('finished');
  const early = count('stopped early');
  const failed = count('failed');
  const training = all.filter(({ live }) => live).length;
  const parts = [
    isRunning
      ? `Running, at most ${counted(jobs, 'run')} at a time`
      : finished + early === all.length
        ? 'Finished'
        : 'Not running',
    `${finished} of ${counted(all.length, 'run')} finished`,
    ...(training > 0 ? [`${training} training`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(early > 0 ? [`${early} stopped early`] : []),
    ...(rungs.length > 0 ? [`arms are compared at ${rungs.length > 1 ? 'steps' : 'step'} ${rungs.join(', ')}`] : []),
  ];
  return parts.join(' · ');
}
