// Formats the verdict of a claim for the terminal: one line per test with its statistic, intervals and effect size.
import { formatNumber } from '../../common/numbers';
import type { Interval } from '../../common/paired-statistics';
import type { AlarmFigures } from '../../run-data/claims/alarm-lead';
import type { ClaimResult, TestResult } from '../../run-data/claims/claim-verdict';

/** Values of single runs are listed up to this number. */
const mostValues = 12;

/** Returns the verdict of a claim as text of several lines. */
export function formatClaim({ number, title, paper, verdict, tests }: ClaimResult): string {
  return [`Claim ${number}: ${title}: ${verdict}`, `  paper: ${paper}`, ...tests.map(formatTest)].join('\n');
}

function formatTest({ name, required, verdict, statistic, values, others, alarms, calibration }: TestResult): string {
  const lines = [`  ${verdict}: ${name}${required ? ' (condition)' : ''}`];
  if (statistic) lines.push(`    ${statisticText(statistic)}`);
  if (values.length > 0 && values.length <= mostValues)
    lines.push(`    seeds ${values.map(({ seed, value }) => `${seed}: ${formatNumber(value)}`).join(', ')}`);
  for (const [other, found] of Object.entries(others)) lines.push(`    ${other}: ${statisticText(found)}`);
  if (alarms) lines.push(`    ${figuresText(alarms)}`);
  if (calibration) {
    const { share, steps, fit, check } = calibration;
    lines.push(
      `    best threshold of prompt_dependence: ${Math.round(100 * share)} % of its best, ${steps} in a row`,
      `      seeds that chose it: ${figuresText(fit)}`,
      `      other seeds: ${figuresText(check)}`,
    );
  }
  return lines.join('\n');
}

function statisticText({ n, value, bootstrap, student, effectSize }: NonNullable<TestResult['statistic']>): string {
  const parts = [
    formatNumber(value),
    ...(bootstrap ? [`bootstrap ${intervalText(bootstrap)}`] : []),
    ...(student ? [`Student’s t ${intervalText(student)}`] : []),
    ...(effectSize === null ? [] : [`d_z ${formatNumber(effectSize)}`]),
  ];
  return `${parts.join(', ')}, n = ${n}`;
}

const intervalText = ({ low, high }: Interval): string => `[${formatNumber(low)}, ${formatNumber(high)}]`;

function figuresText({ runs, collapsed, detected, leads, healthy, falseAlarms, ungained }: AlarmFigures): string {
  const early = collapsed > 0 ? `, ${Math.round(detected * collapsed)} with an alarm in time` : '';
  const late = leads.filter(lead => lead < 0).length;
  const lead =
    leads.length > mostValues ? `, ${late} too late` : leads.length > 0 ? ` (lead ${leads.join(', ')} steps)` : '';
  const others = ungained ? `; ${ungained.alarms} alarms in ${ungained.runs} runs that never gained 10 points` : '';
  return `${collapsed} of ${runs} runs collapsed${early}${lead}; ${Math.round(falseAlarms * healthy)} false alarms in ${healthy} healthy runs${others}`;
}
