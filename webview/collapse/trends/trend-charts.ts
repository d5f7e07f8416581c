// Specifications of the page's small charts: the diagnosis over training, and the signals of an Echo Trap with the
// bounds of their alarms.
import {
  alarmNames,
  alarmRules,
  basisOf,
  boundsOver,
  streaksOver,
  watchedMetric,
  type AlarmName,
} from '../../../extension/run-data/alarm-rules';
import { textProxyNote } from '../../../extension/run-data/text-proxy';
import { counted, formatValue, type Unit } from '../../shared/format';
import { hue } from '../../shared/run-colours';
import type { PathPoint } from '../../../extension/run-data/collapse-path';
import type { RunSeries } from '../../../extension/run-data/interpretation/run-series';
import { lastFinite } from '../plane/unit-square';

export interface ChartLine {
  key: string;
  label: string;
  /** CSS colour of the line. */
  colour: string;
  /** Keys of the lower and the upper end of the interval around the line. */
  band?: { low: string; high: string };
  /** Whether the line is a bound for the other lines. Bounds are drawn as dashed lines. */
  bound?: boolean;
  /** Computes the line's values. If undefined, the values are the column of `key`. */
  values?(series: RunSeries): ArrayLike<number>;
}

export interface LineChartSpec {
  id: string;
  title: string;
  unit: Unit;
  lines: readonly ChartLine[];
  /** Added to the tooltip of the title. */
  hint?: string;
  /** Text under the title if the chart is empty. */
  empty: string;
  /** Returns a function that maps a row to notes about the lines' values at this row, one sentence per note. */
  notes?(columns: readonly ArrayLike<number>[]): (row: number) => string[];
}

const colour = (index: number): string => `var(--c${index})`;
const bound = 'var(--muted)';

/** The chart of the text-only proxy; shown in runs that have its metric. */
const textProxy: LineChartSpec = {
  id: 'text-proxy',
  title: 'Text-only proxy of I(X;Z)',
  unit: 'number',
  empty: 'no two thoughts under one prompt',
  notes: () => () => [textProxyNote],
  lines: [{ key: 'thoughts/prompt_information', label: 'now', colour: colour(hue.blue) }],
};

/**
 * Returns the charts of a family's metrics and, for comparison, a chart of the success rates. `path` contains the
 * family's diagnoses in `series`.
 */
export function familyCharts(family: string, series: RunSeries, path: readonly PathPoint[]): LineChartSpec[] {
  const key = (suffix: string) => `${family}/${suffix}`;
  const line = (suffix: string, label: string, index: number, interval = false): ChartLine => ({
    key: key(suffix),
    label,
    colour: colour(index),
    ...(interval && { band: { low: key(`${suffix}_ci_low`), high: key(`${suffix}_ci_high`) } }),
  });
  const empty = 'not diagnosed yet';
  /** Returns the line of a regime threshold, with one value per diagnosis. */
  const threshold = (suffix: string, label: string, axis: 'information' | 'entropy'): ChartLine => ({
    key: key(suffix),
    label,
    colour: bound,
    bound: true,
    values: now => {
      const values = new Map(path.map(({ step, judgement }) => [step, judgement.thresholds[axis]]));
      return now.steps.map(step => values.get(step) ?? NaN);
    },
  });
  const successes = series.keys.filter(name => /^(train|val-env)\/[^/]+\/success$/.test(name));
  return [
    {
      id: 'information',
      title: 'Mutual information I(X;Z)',
      unit: 'number',
      empty,
      lines: [line('mi_estimate', 'now', hue.blue, true), threshold('mi_threshold', 'threshold', 'information')],
    },
    {
      id: 'entropy-given',
      title: 'Entropy under a prompt H(Z|X)',
      unit: 'number',
      empty,
      lines: [
        line('conditional_entropy_est', 'now', hue.blue, true),
        threshold('conditional_entropy_est', 'threshold', 'entropy'),
      ],
    },
    {
      id: 'retrieval',
      title: 'Retrieval accuracy',
      unit: 'share',
      empty,
      lines: [
        line('retrieval_accuracy', 'now', hue.blue, true),
        { ...line('retrieval_chance_level', 'chance', hue.grey), colour: bound, bound: true },
      ],
    },
    {
      id: 'z-scores',
      title: 'z-scores of mutual information',
      unit: 'number',
      empty,
      lines: [
        line('mi_zscore_ema', 'by running std', hue.blue),
        line('mi_zscore', 'by current std', hue.sky),
        line('mi_zscore_seq', 'complete texts', hue.green),
      ],
    },
    {
      id: 'entropies',
      title: 'Entropies',
      unit: 'number',
      empty: 'nothing logged yet',
      lines: [
        line('reasoning_entropy_est', 'H(Z)', hue.purple),
        line('conditional_entropy_est', 'H(Z|X)', hue.blue),
        { key: 'actor/entropy', label: 'tokens', colour: colour(hue.orange) },
      ],
    },
    ...(series.column(textProxy.lines[0].key).length > 0 ? [textProxy] : []),
    {
      id: 'success',
      title: 'Success',
      unit: 'share',
      empty: 'nothing logged yet',
      lines: successes.map((name, i) => ({
        key: name,
        label: name.startsWith('val') ? 'validation' : 'training',
        colour: colour([hue.blue, hue.orange, hue.green, hue.purple][i % 4]),
      })),
    },
  ];
}

const titles: Record<AlarmName, string> = {
  reward_variance: 'In-group reward std',
  gradient_spike: 'Gradient norm',
  entropy_rise: 'Token entropy',
  entropy_drop: 'Token entropy',
  thought_repetition: 'Most frequent thought',
  thought_diversity: 'Distinct word pairs',
  response_length: 'Response length',
  invalid_answers: 'Answers without a valid action',
  missing_thoughts: 'Answers with a thought',
  prompt_dependence: 'Mutual information',
};

/**
 * Explains why a line beyond its bound has not raised an alarm: `alarm after 5 steps in a row over 81.1; now 4 steps`.
 */
function formatStreak(
  name: AlarmName,
  values: ArrayLike<number>,
  bounds: ArrayLike<number>,
  unit: Unit,
): (row: number) => string[] {
  const rule = alarmRules[name];
  const { now, most } = streaksOver(rule, values, bounds);
  return row => {
    if (rule.steps === 1 || !(most[row] > 0)) return [];
    const longest = most[row] > now[row] ? `, longest ${most[row]}` : '';
    const bound = formatValue(lastFinite(bounds, row), unit);
    return [
      `alarm after ${rule.steps} ${rule.measured ?? 'steps'} in a row ${rule.side} ${bound}; now ${rule.measured ? `${now[row]} of them` : counted(now[row], 'step')}${longest}`,
    ];
  };
}

/** Returns the values that a rule reads in a run. */
const watchedColumn = (name: AlarmName, series: RunSeries): readonly number[] =>
  series.column(watchedMetric(alarmRules[name], key => series.column(key).length > 0));

/** The charts of alarm signals, one per metric; a metric with two alarm rules has two bounds. */
export const signalCharts: LineChartSpec[] = [...new Set(alarmNames.map(name => alarmRules[name].metric))].map(
  metric => {
    const names = alarmNames.filter(name => alarmRules[name].metric === metric);
    const unit: Unit = metric.startsWith('thoughts/') || metric.endsWith('_rate') ? 'share' : 'number';
    return {
      id: metric,
      title: titles[names[0]],
      unit,
      hint: [...new Set(names.map(name => `Alarm bound: ${basisOf(alarmRules[name])}.`))].join('\n'),
      empty: 'not logged',
      notes([values, ...bounds]) {
        const labels = names.map((name, i) => formatStreak(name, values, bounds[i], unit));
        return row => labels.flatMap(at => at(row));
      },
      lines: [
        { key: metric, label: 'now', colour: colour(hue.blue), values: now => watchedColumn(names[0], now) },
        ...names.map((name): ChartLine => {
          const rule = alarmRules[name];
          return {
            key: metric,
            label: `alarm ${rule.side}`,
            colour: 'var(--alarm)',
            bound: true,
            values: now =>
              boundsOver(rule, watchedColumn(name, now), rule.limit === undefined ? undefined : now.column(rule.limit)),
          };
        }),
      ],
    };
  },
);
