// The alarms of an attached run. They are the shipped rules (run-data/alarm-rules.ts), applied to all rows in the order
// of their steps, and written as events of the run. Rows of another trainer can change afterwards: rollouts are converted
// in the background, newest first, and a trainer repeats steps. If other alarms follow from the rows than the log has,
// the log is rewritten from the first difference on.
import { isRecord, jsonOrNothing } from '../common/json';
import { watchedMetrics } from '../run-data/alarm-rules';
import { nothingWatched, watchStep } from '../trainer/diagnostics/alarms';
import { readLines, type LineLog } from '../trainer/store/line-log';
import type { MetricTable } from './metric-table';

/** An event of the kind `alarm` (run-data/run-events.ts). */
interface AlarmEvent {
  time: string;
  step: number;
  kind: 'alarm';
  message: string;
  data: { alarm: string; step: number; metric: string; value: number; bound: number };
}

/** Returns the alarms of all rows, in the order of their steps. */
export function alarmsOf(table: MetricTable): AlarmEvent[] {
  const events: AlarmEvent[] = [];
  let state = nothingWatched;
  for (const step of table.steps) {
    const metrics: Record<string, number> = {};
    for (const name of watchedMetrics) {
      const value = table.value(step, name);
      if (value !== undefined) metrics[name] = value;
    }
    const watched = watchStep(state, metrics);
    state = watched.state;
    const time = new Date(table.timeOf(step)).toISOString();
    for (const { name, metric, value, bound, sentence } of watched.alarms)
      events.push({ time, step, kind: 'alarm', message: sentence, data: { alarm: name, step, metric, value, bound } });
  }
  return events;
}

/** Makes the alarms of an event log those of `alarms`; all other events stay. Returns whether the log has changed. */
export function writeAlarms(log: LineLog, alarms: readonly AlarmEvent[]): boolean {
  let [from, matched] = [0, 0];
  let differsAt: number | undefined;
  const later: unknown[] = [];
  for (const { text, next } of readLines(log.file)) {
    const event = jsonOrNothing(text);
    const isAlarm = isRecord(event) && event['kind'] === 'alarm';
    if (isAlarm && differsAt === undefined) {
      if (isSame(event, alarms[matched])) matched++;
      else differsAt = from;
    }
    if (!isAlarm && differsAt !== undefined && event !== undefined) later.push(event);
    from = next;
  }
  if (differsAt !== undefined) log.truncateTo(differsAt);
  const rest = [...later, ...alarms.slice(matched)];
  if (rest.length > 0) log.appendAll(rest);
  return differsAt !== undefined || rest.length > 0;
}

/** Whether an event of the log is this alarm. */
const isSame = (event: Record<string, unknown>, alarm: AlarmEvent | undefined): boolean =>
  alarm !== undefined &&
  event['step'] === alarm.step &&
  event['message'] === alarm.message &&
  isRecord(event['data']) &&
  event['data']['alarm'] === alarm.data.alarm;
