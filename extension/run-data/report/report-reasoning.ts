// The part of a report on the reasoning: what the Collapse page says about the newest diagnosis of each family.
import type { ReportTextBlock } from '../../../envs/api/plugins/report';
import { collapseSettings } from '../collapse-settings';
import { circumstancesAt, evidenceOf, evidenceUpTo } from '../interpretation/evidence';
import { interpret, type Interpretation } from '../interpretation/interpretation';
import { missingFamily } from '../interpretation/missing-family';
import { families, RunSeries } from '../interpretation/run-series';
import type { DrawnRun } from './report-charts';

const confidences: Record<Interpretation['confidence'], string> = {
  none: 'No diagnosis',
  low: 'Low confidence',
  moderate: 'Moderate confidence',
  high: 'High confidence',
};

/** Returns the interpretation of a run's diagnoses; a sentence that says why if the run has none. */
export function reasoningBlocks({ run, series }: DrawnRun): ReportTextBlock[] {
  const all = new RunSeries();
  all.load({ steps: [...series.steps], series: series.series });
  const settings = collapseSettings(run.manifest);
  const checkpoints = run.checkpoints.flatMap(name => Number(/^step-(\d+)$/.exec(name)?.[1] ?? Number.NaN));
  const facts = { settings, events: run.events, checkpoints: checkpoints.filter(Number.isFinite) };
  const last = all.steps.at(-1) ?? 0;
  const blocks = families.flatMap(({ name, label }): ReportTextBlock[] => {
    const evidence = evidenceOf(all, name);
    if (evidence.path.length === 0) return [];
    const found = interpret(evidenceUpTo(evidence, last, circumstancesAt(facts, last, name)));
    return familyBlocks(label, evidence.path[evidence.path.length - 1].step, found);
  });
  if (blocks.length > 0) return blocks;
  const { text, override } = missingFamily(settings, 'collapse_first_turn_sample');
  return [{ kind: 'paragraph', text: override === undefined ? text : `${text} ${override}` }];
}

function familyBlocks(label: string, step: number, found: Interpretation): ReportTextBlock[] {
  const { caption, headline, sentence, confidence, why, signs, advice } = found;
  return [
    { kind: 'paragraph', strong: true, text: `${label}, step ${step}: ${headline} (${caption}).` },
    ...(sentence === '' ? [] : [{ kind: 'paragraph', text: sentence } as const]),
    { kind: 'paragraph', text: `${confidences[confidence]}: ${why}.` },
    ...(signs.length === 0 ? [] : [{ kind: 'list', items: signs.map(({ text }) => `Sign: ${text}`) } as const]),
    { kind: 'list', items: advice.map(({ text }) => `To try: ${text}`) },
  ];
}
