// The summary of an evaluation as text: one row per tag with success rate, confidence interval and pass@k, then cost
// and output files.
import { maximum } from '../../common/lists';
import type { EvaluationSummary } from '../../trainer/evaluation/evaluation-summary';
import type { Estimate } from '../../trainer/evaluation/success-statistics';

export function formatEvaluation({ tags, overall, api, entropy, files, run }: EvaluationSummary): string {
  const sizes = Object.keys(overall.pass_at).filter(k => k !== '1');
  const rows = [
    ['', 'episodes', 'success (95 %)', ...sizes.map(k => `pass@${k}`)],
    ...[...Object.entries(tags), ...(Object.keys(tags).length > 1 ? [['all', overall] as const] : [])].map(
      ([name, { episodes, success, pass_at }]) => [
        name,
        String(episodes),
        success ? interval(success) : 'none',
        ...sizes.map(k => (pass_at[k] ? percent(pass_at[k].mean) : '')),
      ],
    ),
  ];
  const widths = rows[0].map((_, column) => maximum(rows.map(row => row[column].length)));
  const lines = rows.map(row =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column])))
      .join('  ')
      .trimEnd(),
  );
  if (entropy !== null) lines.push(`Entropy ${entropy.toFixed(3)} nats per token`);
  if (api) {
    const { length, content_filter, refused } = api.failed_episodes;
    const cost = api.cost === null ? '' : `, cost ${api.cost.toFixed(4)}`;
    lines.push(
      `${api.requests} requests, ${api.input_tokens} tokens in, ${api.output_tokens} out${cost}; episodes without an answer: ${length} truncated, ${content_filter} filtered, ${refused} refused`,
    );
  }
  const failed = Object.values(tags).reduce((sum, { failed_environments }) => sum + failed_environments, 0);
  if (failed > 0) lines.push(`${failed} episodes left out: their environments failed`);
  return [...lines, `Run ${run}`, `Trajectories: ${files.trajectories}`, `Summary: ${files.summary}`].join('\n');
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

const interval = ({ mean, low, high }: Estimate): string =>
  `${percent(mean)} (${(low * 100).toFixed(1)}–${(high * 100).toFixed(1)})`;
