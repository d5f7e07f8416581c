// The diagnoses of an attached run under one model (run-data/model-scoring.ts): which steps are scored, their files, and
// their metrics in the run's metrics.jsonl. A step is complete when model.json names it, so a stopped diagnosis continues
// with the next step. If a process follows the run, this process adds the metrics; else they are added here.
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../common/user-error';
import { storedFindings } from '../../foreign-runs/attached-episodes';
import { AttachedMetrics, derivedRows, modelScoringOf } from '../../foreign-runs/attached-metrics';
import { isFollowed } from '../../foreign-runs/follow-run';
import { replaceFile } from '../../node/files';
import { namesInRunSync } from '../../node/read-run-file';
import { collapseDiagnosisSchema, collapseFile, type CollapseDiagnosis } from '../../run-data/diagnostics';
import { modelScoringFile, type ModelScoring } from '../../run-data/model-scoring';
import { runFiles } from '../../run-data/run-file-names';
import { metricsOf, StepJudge } from '../../trainer/inspection/stored-diagnosis';
import { acquireLease, newToken, type HeldLease } from '../../trainer/store/held-lease';
import { json, readJson } from '../../trainer/store/run-documents';
import type { RunFolder } from '../../trainer/store/run-folder';

export class ScoredSteps {
  /** Judges the step after the last scored one; undefined until the scored steps were read. */
  private judge: StepJudge | undefined;

  private constructor(
    private readonly folder: RunFolder,
    private readonly scoring: ModelScoring,
    private readonly lease: HeldLease,
  ) {}

  /**
   * Opens the diagnoses of a run for writing. With `replace`, diagnoses under another model are removed. Throws a
   * UserError if there are such diagnoses, or if another process makes diagnoses of this run.
   */
  static async open(
    folder: RunFolder,
    { model, source, samples, replace }: Pick<ModelScoring, 'model' | 'source' | 'samples'> & { replace: boolean },
  ): Promise<ScoredSteps> {
    const diagnostics = folder.file(runFiles.diagnostics);
    mkdirSync(diagnostics, { recursive: true });
    const lease = await leaseOf(diagnostics, folder.id, `run ${folder.id} is being diagnosed by another process`);
    try {
      const known = modelScoringOf(folder);
      const isOther = known !== null && (known.source !== source || known.samples !== samples);
      if (isOther && !replace)
        throw new UserError(
          `run ${folder.id} has diagnoses under ${known.source} with ${known.samples} samples, which cannot be compared with ${source} and ${samples} samples: give --replace to remove them, or diagnose under ${known.source} with --samples ${known.samples}`,
        );
      if (known === null || isOther) removeDiagnoses(folder);
      const scoring: ModelScoring = known && !isOther ? known : { schema: 1, model, source, samples, steps: {} };
      return new ScoredSteps(folder, scoring, lease);
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  /** Steps that are scored, ascending. */
  get steps(): number[] {
    return Object.keys(this.scoring.steps)
      .map(Number)
      .sort((a, b) => a - b);
  }

  /** Adds a scored step, and judges it and the later steps. `metrics` are further metrics of the step. */
  async add(diagnosis: CollapseDiagnosis, metrics: Record<string, number>, note: string | undefined): Promise<void> {
    const { step } = diagnosis;
    const { scoring, folder, steps } = this;
    scoring.steps[step] = { metrics, ...(note !== undefined && { note }) };
    const isLast = steps.every(each => each < step);
    if (this.judge === undefined || !isLast) await this.judgeAgain(diagnosis);
    else await this.write(this.judge.judge(diagnosis));
    await replaceFile(folder.file(modelScoringFile), json(scoring));
    await this.showMetrics();
  }

  close(): void {
    this.lease.release();
  }

  /** Judges all scored steps in order, with the files of those other than `added`. */
  private async judgeAgain(added: CollapseDiagnosis): Promise<void> {
    const judge = (this.judge = new StepJudge());
    for (const step of this.steps) {
      const file = collapseFile(step);
      if (step !== added.step && !existsSync(this.folder.file(file))) continue; // without thoughts
      await this.write(
        judge.judge(step === added.step ? added : readJson(this.folder.path, file, collapseDiagnosisSchema)),
      );
    }
  }

  private async write(diagnosis: CollapseDiagnosis): Promise<void> {
    const entry = this.scoring.steps[diagnosis.step];
    Object.assign(entry.metrics, metricsOf(diagnosis));
    if (diagnosis.families.length > 0)
      await replaceFile(this.folder.file(collapseFile(diagnosis.step)), JSON.stringify(diagnosis));
  }

  /** Adds the metrics to metrics.jsonl, unless another process writes this file. */
  private async showMetrics(): Promise<void> {
    const { folder, scoring } = this;
    if (isFollowed(folder)) return;
    const lease = await leaseOf(folder.path, folder.id, '').catch(() => null); // a process has begun to follow the run
    if (!lease) return;
    try {
      const metrics = new AttachedMetrics(folder);
      try {
        metrics.table.derive(derivedRows({ ...storedFindings(folder), scoring, logged: metrics.table.keys }));
        await metrics.writeDerived(scoring.model);
        metrics.writeAlarms();
      } finally {
        metrics.close();
      }
    } finally {
      lease.release();
    }
  }
}

async function leaseOf(runFolder: string, run: string, held: string): Promise<HeldLease> {
  try {
    return await acquireLease({
      ...{ runFolder, run, pid: process.pid, endpoint: '', token: newToken() },
      onLost: () => process.exit(1),
    });
  } catch (error) {
    if (error instanceof UserError && held !== '') throw new UserError(`${held}: wait for its end`, { cause: error });
    throw error;
  }
}

function removeDiagnoses(folder: RunFolder): void {
  rmSync(folder.file(modelScoringFile), { force: true });
  for (const name of namesInRunSync(folder.path, runFiles.diagnostics))
    if (/^collapse-\d+\.json$/.test(name)) rmSync(join(folder.file(runFiles.diagnostics), name));
}
