// Formats a report about a server as text, which the terminal prints and the editor shows as a document. Pure
// functions.
import { formatNumber } from '../common/numbers';
import { maximum } from '../common/lists';
import type { EngineReport, MeasuredEngine } from './engine-report';
import { reasonClause } from '../run-data/engine-limits';

/** Seconds by which a server's clock may differ from the local clock without being reported. */
export const clockTolerance = 60;

/**
 * Formats a report as lines: facts about the server, what a run on this server cannot do, and the settings that have no
 * effect there.
 */
export function engineText(report: EngineReport): string {
  const { limits, ignored } = report;
  return [
    ...aligned(engineRows(report), ''),
    '',
    'Values that a run on this server supports:',
    ...aligned(
      limits.map(({ key, supported, reason }) => [key, `${supported} (${reasonClause(reason)})`]),
      '  ',
    ),
    '',
    'These settings have no effect:',
    ...aligned(
      ignored.map(({ key, reason }) => [key, reasonClause(reason)]),
      '  ',
    ),
  ].join('\n');
}

/** Returns the facts about a server as rows of name and value. */
export function engineRows(report: EngineReport): [string, string][] {
  const {
    url,
    encrypted,
    server,
    key,
    models,
    round_trip_ms,
    clock_difference_s: ahead,
    measured,
    not_measured,
  } = report;
  const keys = {
    accepted: 'accepted',
    'not checked': 'sent, but not checked, because the server answers without a key too',
    none: 'no key is needed to connect',
  };
  const clock = ahead !== null && Math.abs(ahead) > clockTolerance ? ahead : null;
  return [
    ['Address', `${url}, ${encrypted ? 'encrypted (TLS), certificate valid' : 'not encrypted'}`],
    ['Server', server === null ? 'gives no name' : `${server.name} ${server.version}`],
    ['API key', keys[key]],
    ['Models', models.length === 0 ? 'gives no list' : models.map(modelText).join(', ')],
    ['Round trip', `${milliseconds(round_trip_ms)} (median of 5)`],
    ...(clock === null
      ? []
      : [['Clock', `${Math.abs(clock)} s ${clock > 0 ? 'ahead of' : 'behind'} this machine’s`] as [string, string]]),
    ...(measured ? measuredRows(measured) : [['Measured', `nothing: ${not_measured}`] as [string, string]]),
  ];
}

/** Returns one line about a server: its model and rates. */
export function engineSummary({ round_trip_ms, measured, models }: EngineReport): string {
  const model = measured?.model ?? models.map(({ name }) => name).join(', ');
  const rate = measured ? [`${formatNumber(measured.sampling.tokens_per_s)} tokens/s`] : [];
  return [model, ...rate, `round trip ${milliseconds(round_trip_ms)}`].filter(part => part !== '').join(' · ');
}

function measuredRows({
  model,
  lora,
  reduction,
  keeps_versions,
  critic,
  sampling,
}: MeasuredEngine): [string, string][] {
  const { rows, tokens, seconds, tokens_per_s } = sampling;
  return [
    ['Model', `${model}, adapter of rank ${lora.rank} with α ${lora.alpha}`],
    ['Losses', `${reduction.samples} over samples, ${reduction.tokens} over tokens`],
    [
      'Versions',
      keeps_versions
        ? 'a published version does not change with training'
        : 'a published version changes with training',
    ],
    ['Critic', critic === null ? 'not tried' : critic.offered ? 'can be trained' : `not offered (${critic.reason})`],
    [
      'Sampling',
      `${formatNumber(tokens_per_s)} tokens/s (${tokens} tokens of ${rows} concurrent rows in ${milliseconds(seconds * 1000)})`,
    ],
  ];
}

const modelText = ({ name, max_context_length: length }: EngineReport['models'][number]): string =>
  length === null ? name : `${name} (context of ${length} tokens)`;

const milliseconds = (ms: number): string => (ms < 1000 ? `${formatNumber(ms)} ms` : `${formatNumber(ms / 1000)} s`);

function aligned(rows: readonly (readonly [string, string])[], indent: string): string[] {
  const width = maximum(rows.map(([name]) => name.length)) + 2;
  return rows.map(([name, value]) => `${indent}${name.padEnd(width)}${value}`);
}
