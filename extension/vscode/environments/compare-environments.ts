// Shows two versions of a run's environment code in VS Code's diff editor, with the effect of the change on reward and
// success. The sources are read-only documents from the run folder, under a separate URI scheme.
import * as vscode from 'vscode';
import { environmentFile, environmentFiles, isVersionName } from '../../run-data/run-file-names';
import { isSourceName } from '../../run-data/environment-snapshot';
import { readRunFile } from '../../node/read-run-file';
import { formatEffect, lastRuns, spansOf, type RanVersion } from '../../run-data/version-effect';
import { notifyInformation } from '../notifications';
import { plain } from '../plain-text';
import { showQuickPick } from '../questions';
import type { Run } from '../runs/run-store';

/** URI scheme of saved sources. The URI's path is displayed; its query identifies file, version and run folder. */
const scheme = 'ragen-environment';

interface SourceSnapshot {
  folder: string;
  version: string;
  name: string;
}

/** Registers the provider of saved sources. */
export function serveSourceSnapshots(): vscode.Disposable {
  return vscode.workspace.registerTextDocumentContentProvider(scheme, {
    async provideTextDocumentContent({ query }) {
      const { folder, version, name } = JSON.parse(query) as SourceSnapshot;
      if (!isVersionName(version) || !isSourceName(name)) return '';
      const file = environmentFile(version, `${environmentFiles.sources}/${name}`);
      return (await readRunFile(folder, file).catch(() => '')).toString('utf8'); // empty if this version lacks the file
    },
  });
}

/**
 * Lets the user choose two versions and shows their diff. Shows a notification if the run has fewer than two versions.
 */
export async function compareEnvironments({ folder, reader, summary }: Run): Promise<void> {
  const ran = await reader.versions();
  const later = lastRuns(ran).filter(version => before(ran, version).length > 0);
  if (later.length === 0)
    return void notifyInformation(
      vscode.l10n.t(
        'Run {0} has used only one version of each environment: there is nothing to compare yet.',
        summary.name,
      ),
    );
  const after = await choose([...later].reverse(), ran, vscode.l10n.t('Which version of {0}?', summary.name));
  if (!after) return;
  const from = await choose(before(ran, after).reverse(), ran, vscode.l10n.t('Compare with which earlier version?'));
  if (!from) return;

  const kept = await Promise.all([from, after].map(({ version }) => reader.keptEnvironment(version)));
  const names = [...new Set(kept.flatMap(about => about?.sources ?? []))];
  const uri = (version: string, name: string) =>
    vscode.Uri.from({
      scheme,
      path: `/${brief(version)}/${name}`,
      query: JSON.stringify({ folder, version, name } satisfies SourceSnapshot),
    });
  const text = async (version: string, name: string) =>
    (await vscode.workspace.openTextDocument(uri(version, name))).getText();
  const differing: string[] = [];
  for (const name of names)
    if ((await text(from.version, name)) !== (await text(after.version, name))) differing.push(name);
  if (differing.length === 0)
    return void notifyInformation(
      vscode.l10n.t(
        'The sources of {0} and {1} are identical: only their packages differ.',
        brief(from.version),
        brief(after.version),
      ),
    );

  const effect = await reader.effect(from, after);
  const effectLabel = effect
    ? formatEffect(effect)
    : vscode.l10n.t('no effect was measured, because one of the two versions completed no step close to the change');
  const gain = effect && `, reward ${effect.reward.difference >= 0 ? '+' : ''}${effect.reward.difference.toFixed(2)}`;
  const change = `${after.tag} ${brief(from.version)} → ${brief(after.version)}`;
  const title = `${change}${gain ?? ''}`;
  const pairs = differing.map(name => [uri(after.version, name), uri(from.version, name), uri(after.version, name)]);
  if (pairs.length === 1) {
    const [[, left, right]] = pairs;
    await vscode.commands.executeCommand('vscode.diff', left, right, title);
  } else await vscode.commands.executeCommand('vscode.changes', title, pairs);
  void notifyInformation(`${change}: ${effectLabel}`);
}

/**
 * Returns the versions that the tag of `after` ran earlier, without earlier uses of the same version. If a version ran
 * in several ranges of steps, only its last range is returned.
 */
const before = (ran: readonly RanVersion[], after: RanVersion): RanVersion[] =>
  lastRuns(ran.slice(0, ran.indexOf(after))).filter(
    ({ tag, version }) => tag === after.tag && version !== after.version,
  );

async function choose(
  versions: readonly RanVersion[],
  ran: readonly RanVersion[],
  placeHolder: string,
): Promise<RanVersion | undefined> {
  const items = versions.map(version => ({
    label: plain(`${version.tag} ${brief(version.version)}`),
    description: spansOf(ran, version).map(formatSpan).join(', '),
    version,
  }));
  return items.length === 1 ? versions[0] : (await showQuickPick(items, { placeHolder }))?.version;
}

const formatSpan = ({ from, to }: Pick<RanVersion, 'from' | 'to'>): string =>
  to === null ? vscode.l10n.t('from step {0}', from) : vscode.l10n.t('steps {0} to {1}', from, to);

/** Abbreviates a version for display. */
const brief = (version: string): string => version.slice(0, 8);
