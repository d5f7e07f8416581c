// `ragen timeline RUN`: prints how the time of each step was spent. With --export, writes a Chrome trace, which
// Perfetto can open. The trace contains the steps whose individual calls were stored.
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { maximum } from '../../common/lists';
import { UserError } from '../../common/user-error';
import { keptSteps, readStepTimeline } from '../../node/read-timeline';
import { laneLabels, traceEvents, traceText } from '../../run-data/chrome-trace';
import { runFiles } from '../../run-data/run-file-names';
import { lanes, stepSummarySchema, type StepSummary, type StepTimeline } from '../../run-data/timeline';
import { readValues } from '../../trainer/store/line-log';
import { RunFolder } from '../../trainer/store/run-folder';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer, type Answer } from '../output/answer';

interface TimelineFlags extends CommonFlags {
  steps?: string;
  export?: string;
}

export function addTimeline(program: Command): void {
  withCommon(program.command('timeline').description('show where the time of each step went, or export it'))
    .argument('<run>', 'id of the run')
    .option('--steps <range>', 'steps, such as 3, 3..7, 3.. or ..7 (default: all)')
    .option('--export <file>', 'write the steps as a Chrome trace, which https://ui.perfetto.dev opens')
    .addHelpText(
      'after',
      `
Prints the seconds of each lane, such as sampling or update. Each instant counts for one lane only: the lane for which
the rest of the step waits. Single calls are kept for the newest steps and every k-th step (workbench.timeline_steps, workbench.timeline_every); only these steps
are exported. Output with --json: a list of {"step", "start", "seconds", "exposed", "busy", "in_flight", "staleness",
"spans"}; with --export {"file", "steps", "events"}.`,
    )
    .action((run: string, flags: TimelineFlags) => answer(flags, () => timeline(run, flags)));
}

async function timeline(run: string, flags: TimelineFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const folder = RunFolder.find(workspace, run);
  const isWanted = stepRange(flags.steps);
  const file = folder.file(runFiles.timelineSteps);
  const steps = [...readValues(file, line => stepSummarySchema.parse(line))].map(({ value }) => value);
  if (steps.length === 0)
    throw new UserError(
      `timeline: run ${folder.id} has no ${runFiles.timelineSteps}: the trainer does not record a timeline, or no step has ended yet`,
    );
  const wanted = steps.filter(({ step }) => isWanted(step));
  if (flags.export === undefined) return { document: wanted, plainText: table(wanted) };
  return exported(folder, isWanted, resolve(workspace, flags.export));
}

async function exported(folder: RunFolder, isWanted: (step: number) => boolean, file: string): Promise<Answer> {
  const kept = (await keptSteps(folder.path)).filter(isWanted);
  const read = await Promise.all(kept.map(step => readStepTimeline(folder.path, step)));
  const timelines = read.filter((found): found is StepTimeline => found !== null);
  if (timelines.length === 0)
    throw new UserError(
      `timeline: ${join(folder.path, runFiles.timeline)} has no single calls of the given steps: give other --steps, or raise workbench.timeline_steps in the next run`,
    );
  const { name } = folder.manifest;
  writeFileSync(file, [...traceText(name, timelines)].join(''));
  const events = [...traceEvents(name, timelines)].length;
  const steps = timelines.map(({ step }) => step);
  return {
    document: { file, steps, events },
    plainText: `${timelines.length === 1 ? `step ${steps[0]}` : `${timelines.length} steps`}, ${events} events: ${file}`,
  };
}

/** Parses `3`, `3..7`, `3..` and `..7`. */
function stepRange(text: string | undefined): (step: number) => boolean {
  if (text === undefined) return () => true;
  const [, from, dots, to] = /^(\d*)(\.\.)?(\d*)$/.exec(text) ?? [];
  if (from === undefined || (from === '' && to === ''))
    throw new UserError(`--steps is ${JSON.stringify(text)}: give steps such as 3, 3..7, 3.. or ..7`);
  const first = Number(from || 0);
  const last = dots === undefined ? first : Number(to || Infinity);
  return step => step >= first && step <= last;
}

function table(steps: readonly StepSummary[]): string {
  const shown = lanes.filter(lane => steps.some(({ exposed }) => (exposed[lane] ?? 0) > 0));
  const fixed = (value: number | undefined): string => (value === undefined ? '' : value.toFixed(2));
  const heads = ['step', 'seconds', ...shown.map(lane => laneLabels[lane].toLowerCase()), 'in flight'];
  const rows = steps.map(({ step, seconds, exposed, in_flight: [peak] }) => [
    String(step),
    fixed(seconds),
    ...shown.map(lane => fixed(exposed[lane])),
    String(peak),
  ]);
  const widths = heads.map((head, i) =>
    maximum(
      rows.map(row => row[i].length),
      head.length,
    ),
  );
  return [heads, ...rows].map(cells => cells.map((cell, i) => cell.padStart(widths[i])).join('  ')).join('\n');
}
