// `RAGEN: Replay Episode`: plays the recorded actions again, and reports whether the result is the same.
import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { formatSigned } from '../../../common/numbers';
import { UserError } from '../../../common/user-error';
import type { Transcript } from '../../../protocol/environment-tools';
import { notifyInformation, notifyWarning, withProgress } from '../../notifications';
import { askEnvironmentCli } from '../../processes/environment-cli';
import { firstDifference, replayCase } from './replay';
import type { TraceServices } from './trace-services';
import type { OpenTrace } from '../trace-documents';

/** Replays an episode and reports whether the result is the same. */
export async function replayEpisode({ trust, cliFor }: TraceServices, { location, trace }: OpenTrace): Promise<void> {
  // The manifest names the environment file to execute and contains the environment's settings.
  const trusted = await trust.ask(location.folder);
  if (!trusted) return;
  const played = replayCase(trace.episode, trusted.manifest);
  if (!played)
    throw new UserError(
      vscode.l10n.t('The run’s configuration has no tag {0}, so the episode cannot be replayed.', trace.episode.tag),
    );
  const workspace = join(location.folder, '..', '..', '..');
  const input = join(tmpdir(), `ragen-replay-${randomUUID()}.json`);
  const title = vscode.l10n.t('Replaying {0}', location.id);
  const [transcript] = await withProgress({ location: vscode.ProgressLocation.Window, title }, async () => {
    await writeFile(input, JSON.stringify([played]));
    try {
      return await askEnvironmentCli<Transcript[]>(await cliFor(workspace), ['play', '--input', input]);
    } finally {
      await rm(input, { force: true });
    }
  });
  if ('error' in transcript)
    throw new UserError(vscode.l10n.t('{0} cannot be replayed: {1}', location.id, transcript.error));
  const difference = firstDifference(trace.episode, transcript);
  const { name, version } = trace.episode.environment;
  if (!difference) {
    void notifyInformation(
      vscode.l10n.t(
        '{0} replayed: every turn gave the same state and reward (return {1}).',
        location.id,
        formatSigned(trace.episode.reward),
      ),
    );
    return;
  }
  const what = { reward: vscode.l10n.t('reward'), state: vscode.l10n.t('state'), end: vscode.l10n.t('end') };
  const { turn, recorded, now } = difference;
  const detail = difference.what === 'state' ? '' : `: ${vscode.l10n.t('recorded {0}, now {1}', recorded, now)}`;
  const message = vscode.l10n.t(
    '{0} was replayed, and the replay differs from turn {1} on ({2}{3}). The episode was recorded with version {4} of {5}.',
    location.id,
    turn,
    what[difference.what],
    detail,
    version.slice(0, 8),
    name,
  );
  void notifyWarning(message);
}
