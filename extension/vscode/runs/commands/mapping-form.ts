// The form for JSON lines whose fields have unusual names: a list of meanings with the proposed fields, which the user
// corrects row by row. The mapping is kept in the workspace's folder `.ragen/mappings`, as the YAML file that
// `ragen attach --mapping` reads.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { storeError } from '../../../node/files';
import {
  mappingComments,
  mappingProblem,
  mappingYaml,
  type FieldMeaning,
  type MappingProposal,
} from '../../../run-data/mapping-proposal';
import { plain } from '../../plain-text';
import { createQuickPick, showQuickPick } from '../../questions';
import {
  choicesOf,
  metricChoices,
  metricLabel,
  previewOf,
  rowsOf,
  withField,
  withMetric,
  type MappingRow,
} from '../mapping-rows';

type Item = vscode.QuickPickItem & { row?: MappingRow; isOpen?: true };

/** Lets the user correct a mapping; returns the path of its file, undefined if the user cancels. */
export async function askForMapping(workspace: string, proposal: MappingProposal): Promise<string | undefined> {
  let now = proposal;
  for (let last: MappingRow | undefined; ;) {
    const chosen = await chooseRow(now, last);
    if (!chosen) return undefined;
    if (chosen.isOpen) {
      if (mappingProblem(now) === undefined) return save(workspace, now);
      continue;
    }
    last = chosen.row;
    if (last) now = { ...now, mapping: await corrected(now, last) };
  }
}

/** Shows the form; `last` is the row that was changed before, which is selected again. */
function chooseRow(proposal: MappingProposal, last: MappingRow | undefined): Promise<Item | undefined> {
  const { file, contents } = proposal;
  const pick = createQuickPick<Item>();
  pick.title = plain(vscode.l10n.t('Fields of {0}', file));
  pick.placeholder = vscode.l10n.t('Choose a row to change it; the first row opens the run.');
  pick.matchOnDescription = true;
  const rows = rowsOf(proposal).map(row => itemOf(proposal, row));
  const heading = (label: string): Item => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const fields = rows.filter(({ row }) => row?.kind === 'field');
  const metrics = rows.filter(({ row }) => row?.kind === 'metric');
  const title = contents === 'rollouts' ? vscode.l10n.t('Fields of a rollout') : vscode.l10n.t('Fields of a line');
  const renamed = metrics.length > 0 ? [heading(vscode.l10n.t('Metrics')), ...metrics] : [];
  pick.items = [openItem(proposal), heading(title), ...fields, ...renamed];
  const again = rows.find(({ row }) => JSON.stringify(row) === JSON.stringify(last));
  if (last && again) pick.activeItems = [again];
  return new Promise(resolve => {
    let answer: Item | undefined;
    pick.onDidAccept(() => {
      [answer] = pick.selectedItems;
      pick.hide();
    });
    pick.onDidHide(() => {
      pick.dispose();
      resolve(answer);
    });
    pick.show();
  });
}

function openItem(proposal: MappingProposal): Item {
  const problem = mappingProblem(proposal);
  const label = vscode.l10n.t('Open the run with these fields');
  if (problem === undefined) return { label: `$(check) ${label}`, detail: plain(previewOf(proposal)), isOpen: true };
  return { label: `$(warning) ${label}`, detail: vscode.l10n.t('Not yet: {0}.', problem), isOpen: true };
}

function itemOf({ fields, mapping }: MappingProposal, row: MappingRow): Item {
  if (row.kind === 'metric') {
    const name = mapping.metrics?.[row.metric];
    return { label: plain(row.metric), description: name === undefined ? '' : `→ ${plain(metricLabel(name))}`, row };
  }
  const path = mapping.fields?.[row.meaning];
  const samples = fields.find(field => field.path === path)?.samples ?? [];
  const label = labelOf(row.meaning);
  if (path === undefined || path === '') return { label, description: vscode.l10n.t('none'), row };
  return { label, description: `← ${plain(path)}`, detail: plain(samples.join(' · ')), row };
}

const labelOf = (meaning: FieldMeaning): string =>
  ({
    step: vscode.l10n.t('Step'),
    messages: vscode.l10n.t('Messages of the conversation'),
    prompt: vscode.l10n.t('Prompt'),
    completion: vscode.l10n.t('Completion'),
    reward: vscode.l10n.t('Reward'),
    success: vscode.l10n.t('Success'),
    group: vscode.l10n.t('Prompt group'),
    tag: vscode.l10n.t('Environment or data source'),
    advantage: vscode.l10n.t('Advantage'),
    time: vscode.l10n.t('Time'),
  })[meaning];

/** Asks for the field or name of a row; returns the mapping, unchanged if the user cancels. */
async function corrected(proposal: MappingProposal, row: MappingRow): Promise<MappingProposal['mapping']> {
  const { fields, mapping, file } = proposal;
  type Choice = vscode.QuickPickItem & { value: string | null };
  const none = row.kind === 'field' ? vscode.l10n.t('No field') : vscode.l10n.t('Keep the name of the file');
  const choices =
    row.kind === 'field'
      ? choicesOf(row.meaning, fields).map(({ path, kind, samples }): Choice => {
          return { label: plain(path), description: kind, detail: plain(samples.join(' · ')), value: path };
        })
      : metricChoices.map((key): Choice => ({ label: metricLabel(key), value: key }));
  const chosen = await showQuickPick<Choice>([{ label: `$(circle-slash) ${none}`, value: null }, ...choices], {
    title: plain(row.kind === 'field' ? `${labelOf(row.meaning)} · ${file}` : row.metric),
    placeHolder:
      row.kind === 'field' ? vscode.l10n.t('Which field of the file?') : vscode.l10n.t('Which metric is this?'),
    matchOnDetail: true,
  });
  if (!chosen) return mapping;
  return row.kind === 'field'
    ? withField(mapping, row.meaning, chosen.value)
    : withMetric(mapping, row.metric, chosen.value);
}

/** Writes the mapping to a new file in `.ragen/mappings` of the workspace; returns its path. */
async function save(workspace: string, proposal: MappingProposal): Promise<string> {
  const folder = join(workspace, '.ragen', 'mappings');
  const stem = proposal.file
    .replace(/^.*\//, '')
    .replace(/\.[a-z]+$/i, '')
    .replace(/[^\w.-]/g, '_');
  const text = mappingYaml(proposal.mapping, mappingComments(proposal));
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    throw storeError('write', folder, error);
  }
  for (let number = 1; ; number++) {
    const file = join(folder, number === 1 ? `${stem}.yaml` : `${stem}-${number}.yaml`);
    try {
      await writeFile(file, text, { flag: 'wx' });
      return file;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw storeError('write', file, error);
    }
  }
}
