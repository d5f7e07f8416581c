// `ragen export --run RUN --mlflow URI`: sends a run to an MLflow tracking server: parameters, tags, metrics, state, and
// as artefacts the run's small files and its report. A repeated export sends only new metrics.
import { UserError } from '../../common/user-error';
import { hasRunFile, readRunFileSync } from '../../node/read-run-file';
import { numbersOf } from '../../run-data/metric-segments';
import { summaryOf } from '../../run-data/report/summary-report';
import { runFiles } from '../../run-data/run-file-names';
import { metricsLineSchema } from '../../run-data/step-lines';
import { readValues } from '../../trainer/store/line-log';
import { RunFolder } from '../../trainer/store/run-folder';
import { mlflowAddress, MlflowClient, MlflowError, type MlflowRun } from '../../trainer/tracking/mlflow-client';
import { mlflowState, openMlflowRun, sendMetrics, timed, type TimedMetrics } from '../../trainer/tracking/mlflow-run';
import type { Answer } from '../output/answer';
import { htmlReport } from '../report/html-report';
import { reportedRuns } from '../report/reported-runs';

export interface MlflowExport {
  workspace: string;
  run: string;
  uri: string;
  /** Name of the experiment; undefined for the run's project. */
  experiment?: string | undefined;
}

/** Most lines of metrics per group of requests. */
const linesAtOnce = 200;

/** Sends a run. @throws UserError if the server does not answer or refuses the run */
export async function exportToMlflow({ workspace, run: id, uri, experiment }: MlflowExport): Promise<Answer> {
  const folder = RunFolder.find(workspace, id);
  const client = new MlflowClient(mlflowAddress(uri, '--mlflow'));
  try {
    const { name = folder.manifest.name } = folder.readLabels();
    const { run, sentStep } = await openMlflowRun(client, folder.manifest, name, experiment);
    const lines = linesOf(folder).filter(({ step }) => step > sentStep);
    for (let from = 0; from < lines.length; from += linesAtOnce)
      await sendMetrics(client, run.id, lines.slice(from, from + linesAtOnce));
    const status = folder.readStatus();
    const state = mlflowState(status?.state);
    const ended = status && state !== 'RUNNING' ? Date.parse(status.updated) || Date.now() : null;
    await client.updateRun(run.id, state, ended);
    const note = await sendArtifacts(client, run, folder);
    const sent = `${lines.length} lines of metrics → ${client.url}, run ${run.id}`;
    return {
      document: { url: client.url, run_id: run.id, lines: lines.length, note },
      plainText: note === '' ? sent : `${sent}\n${note}`,
    };
  } catch (error) {
    if (error instanceof MlflowError)
      throw new UserError(`mlflow: ${error.message}: check the address and the credentials of the server`);
    throw error;
  }
}

function linesOf(folder: RunFolder): TimedMetrics[] {
  const lines = readValues(folder.file(runFiles.metrics), value => metricsLineSchema.parse(value));
  return [...lines].flatMap(({ value }) => {
    const numbers = numbersOf(value);
    return numbers ? [timed(numbers, value.time)] : [];
  });
}

/** Returns why artefacts were not sent; empty if all were. */
async function sendArtifacts(client: MlflowClient, run: MlflowRun, folder: RunFolder): Promise<string> {
  const names = [runFiles.manifest, runFiles.events, runFiles.evaluation, runFiles.notes];
  try {
    for (const name of names)
      if (hasRunFile(folder.path, name)) await client.putArtifact(run, name, readRunFileSync(folder.path, name));
    const runs = await reportedRuns([folder], 'picked');
    await client.putArtifact(run, 'report.html', htmlReport(summaryOf(runs), runs));
    return '';
  } catch (error) {
    if (error instanceof MlflowError && !error.isTransient) return `Without artefacts: ${error.message}`;
    throw error;
  }
}
