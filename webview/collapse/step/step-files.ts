// The parts of the page that show files of the selected step: the matrix, the prompt groups and the gradients.
import { html, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import type { CollapseActions } from '../actions';
import { gradientsView } from './gradients';
import { groupsView } from './groups';
import { matrixView } from './matrix-view';
import { wantedFiles, type CollapseState, type RunFacts } from '../state';
import { stepPart } from './step-part';
import { missingFamily, storedThoughts } from '../../../extension/run-data/interpretation/missing-family';
import { missingGradients, missingGroups } from '../switched-off';

export function stepFiles(
  state: CollapseState,
  { settings }: RunFacts,
  step: number,
  actions: CollapseActions,
): TemplateResult {
  const { files, diagnoses, cell, tableOpen, theme, groupCell, analysis } = state;
  const { chooseAnalysis } = actions;
  const wanted = wantedFiles(state);
  const matrix = stepPart({
    title: 'Cross-scoring: which prompt each reasoning text fits',
    class: 'matrix-part',
    hidden: diagnoses.path.length === 0, // without a diagnosis, the message in place of the plane gives the reason
    file: files.matrix,
    wanted: Boolean(wanted?.matrix),
    missing: missingFamily(settings, state.settings.family, storedThoughts(state.series)),
    actions,
    show: scored => guard([scored, cell, tableOpen, theme], () => matrixView(scored, state, actions)),
  });
  const groups = stepPart({
    title: 'Prompt groups: score deviation and filtering',
    class: 'groups-part',
    file: files.groups,
    wanted: Boolean(wanted?.groups),
    missing: missingGroups(step),
    actions,
    show: judged => guard([judged, groupCell], () => groupsView(judged, groupCell, actions)),
  });
  const gradients = stepPart({
    title: 'Gradients by reward deviation',
    class: 'gradients-part',
    file: files.gradients,
    wanted: Boolean(wanted?.gradients),
    missing: missingGradients(settings),
    actions,
    show: record => guard([record, analysis], () => gradientsView(record, analysis, chooseAnalysis)),
  });
  return html`${matrix} ${groups} ${gradients}`;
}
