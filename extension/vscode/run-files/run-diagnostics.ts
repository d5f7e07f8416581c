// Reads the diagnostics of a run folder on demand: the available steps are read from the file names, and the file of a
// step is read when the step is requested. A file of an incompatible version is treated as missing. Writes nothing.
// Must not import `vscode`.
import { join } from 'node:path';
import { jsonOrNothing } from '../../common/json';
import type { CollapseSettings } from '../../run-data/collapse-settings';
import type { DiagnosedSteps } from '../../protocol/collapse-page';
import {
  collapseDiagnosisSchema,
  collapseFile,
  gradientAnalysisSchema,
  gradientsFile,
  type CollapseDiagnosis,
  type CollapseFamily,
  type GradientAnalysisRecord,
} from '../../run-data/diagnostics';
import { namesInRun, readRunFile } from '../../node/read-run-file';
import { groupRowSchema, type GroupRow } from '../../run-data/step-lines';
import { groupsFile, runFiles } from '../../run-data/run-file-names';
import { collapseSettings } from '../../run-data/collapse-settings';
import { JsonLines } from '../../node/json-lines';

export class RunDiagnostics {
  /**
   * The diagnosis that was read last. It is cached, because the page requests the parts of a diagnosis (families of
   * prompt and reasoning pairs) one after another.
   */
  private newest: { step: number; diagnosis: CollapseDiagnosis } | undefined;

  constructor(private readonly folder: string) {}

  /** Returns the steps that have a file of gradients or groups, ascending. */
  async steps(): Promise<DiagnosedSteps> {
    const names = await namesInRun(this.folder, runFiles.diagnostics);
    const of = (kind: string) =>
      names
        .flatMap(name => new RegExp(`^${kind}-(\\d{6,})\\.jsonl?$`).exec(name)?.[1] ?? [])
        .map(Number)
        .sort((a, b) => a - b);
    return { gradients: of('gradients'), groups: of('groups') };
  }

  /** Returns the matrix and texts of one family; null if the step or family was not diagnosed. */
  async family(step: number, name: string): Promise<CollapseFamily | null> {
    const diagnosis = await this.diagnosis(step);
    return diagnosis?.families.find(family => family.name === name) ?? null;
  }

  async gradients(step: number): Promise<GradientAnalysisRecord | null> {
    return gradientAnalysisSchema.safeParse(await this.json(gradientsFile(step))).data ?? null;
  }

  /** Returns the group table of a step; empty if the file is missing. */
  async groupRows(step: number): Promise<GroupRow[]> {
    return (await new JsonLines(join(this.folder, groupsFile(step)), groupRowSchema, this.folder).read()).lines;
  }

  /** Returns the diagnostics settings of the manifest's configuration. */
  async settings(): Promise<CollapseSettings> {
    return collapseSettings(await this.json(runFiles.manifest));
  }

  private async diagnosis(step: number): Promise<CollapseDiagnosis | undefined> {
    if (this.newest?.step === step) return this.newest.diagnosis;
    const diagnosis = collapseDiagnosisSchema.safeParse(await this.json(collapseFile(step))).data;
    if (diagnosis) this.newest = { step, diagnosis };
    return diagnosis;
  }

  private async json(name: string): Promise<unknown> {
    try {
      return jsonOrNothing((await readRunFile(this.folder, name)).toString('utf8'));
    } catch {
      return undefined;
    }
  }
}
