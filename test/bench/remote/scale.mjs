// How busy the loop and the environments keep a fast server: node test/bench/remote/scale.mjs [--episodes 4096]
// [--tokens 256] [--turns 5] [--steps 3] [--rate 250000] [--latency 64] [--requests 1024] [--processes 8]
// [--profile FILE] [--json]. Run `npm run build` first. Prints, per step and over all steps but the first, the share of
// the time in which the server had work: while the run samples, and from publication to publication. On a machine with
// other load, look at `cpu_per_work` instead: CPU seconds of each process during sampling, per second of the server's
// work. The trainer's main thread can keep the server busy on free cores if its number is below 1, and two cores suffice
// for all if the sum is below 2. Also prints the trainer's memory.
import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { trainOn } from './remote-run.mjs';

const { values } = parseArgs({
  options: {
    episodes: { type: 'string', default: '4096' },
    tokens: { type: 'string', default: '256' },
    turns: { type: 'string', default: '5' },
    steps: { type: 'string', default: '3' },
    rate: { type: 'string', default: '250000' },
    scored: { type: 'string', default: '750000' },
    trained: { type: 'string', default: '250000' },
    latency: { type: 'string', default: '64' },
    requests: { type: 'string', default: '1024' },
    processes: { type: 'string', default: '8' },
    'mini-batch': { type: 'string', default: '1024' },
    override: { type: 'string', multiple: true, default: [] },
    profile: { type: 'string' },
    keep: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const number = name => Number(values[name]);
const before = loadavg()[0];
const started = Date.now();
const { stats, metrics, trace, children } = await trainOn({
  rates: {
    sampled: number('rate'),
    scored: number('scored'),
    trained: number('trained'),
    latency_ms: number('latency'),
  },
  episodes: number('episodes'),
  tokens: number('tokens'),
  turns: number('turns'),
  steps: number('steps'),
  requests: number('requests'),
  processes: number('processes'),
  miniBatch: Math.min(number('mini-batch'), number('episodes')),
  profile: values.profile,
  keep: values.keep,
  more: values.override,
});
const lines = metrics.filter(line => 'timing_s/gen' in line);
// The probe publishes too: only publications that were sampled at length belong to steps.
const steps = stats.steps.filter(step => step.sampling_ms > 100 * Number.EPSILON && step.last - step.first > 0);
const measured = steps.slice(-lines.length);
const sum = (items, of) => items.reduce((total, item) => total + of(item), 0);
const busy = (some, rest) => ({
  sampling: sum(some, s => s.sampling_ms) / sum(some, s => s.last - s.first),
  step: rest.length > 0 ? sum(rest, s => s.sampling_ms + s.training_ms) / sum(rest, s => s.span) : NaN,
});
measured.forEach((step, k) => (step.span = (measured[k + 1]?.first ?? NaN) - step.first));
const later = measured.slice(measured.length > 1 ? 1 : 0);
const spans = later.filter(step => Number.isFinite(step.span));
const millions = stats.sampled / 1e6;
const last = trace.at(-1);
const rss = trace.map(line => line.rss / 2 ** 20);
const result = {
  machine: `${cpus().length} × ${cpus()[0].model.trim()}, Node ${process.version}`,
  load: [before, loadavg()[0]],
  settings: values,
  seconds: (Date.now() - started) / 1000,
  busy: busy(later, spans),
  sampled_per_s: (1000 * sum(later, s => (s.sampling_ms * number('rate')) / 1000)) / sum(later, s => s.last - s.first),
  cpu_per_work: cpuPerWork(),
  rows_per_s: (1000 * stats.rows) / sum(measured, s => s.last - s.first),
  cpu_s_per_million_tokens: {
    trainer: last.cpu_ms / 1000 / millions,
    environments: Math.max(...children.map(({ cpu_ms }) => cpu_ms)) / 1000 / millions,
    server: stats.cpu_ms / 1000 / millions,
  },
  environments: Math.max(...children.map(({ count }) => count)),
  requests: stats.requests,
  most_queued: stats.most_queued,
  megabytes: { to_server: stats.received_bytes / 1e6, from_server: stats.sent_bytes / 1e6 },
  rss_mib: { first_quarter: quarter(rss, 1), last_quarter: quarter(rss, 3), most: Math.max(...rss) },
  steps: measured.map((step, k) => ({
    sampling_s: (step.last - step.first) / 1000,
    sampling_busy: step.sampling_ms / (step.last - step.first),
    step_s: step.span / 1000,
    training_busy_s: step.training_ms / 1000,
    ...Object.fromEntries(Object.entries(lines[k] ?? {}).filter(([key]) => key.startsWith('timing_s/'))),
  })),
};
/** CPU seconds during sampling per second of the server's work. */
function cpuPerWork() {
  const work = sum(later, step => step.sampling_ms);
  const during = samples => sum(later, step => cpuAt(samples, step.last) - cpuAt(samples, step.first)) / work;
  return {
    trainer: during(trace),
    environments: during(children),
    server: sum(later, step => step.cpu_after - step.cpu_before) / work,
  };
}
/** CPU milliseconds at a time, between two samples. */
function cpuAt(samples, time) {
  const after = samples.findIndex(({ t }) => t >= time);
  if (after <= 0) return samples.at(after === 0 ? 0 : -1).cpu_ms;
  const [a, b] = [samples[after - 1], samples[after]];
  return a.cpu_ms + ((time - a.t) / (b.t - a.t)) * (b.cpu_ms - a.cpu_ms);
}
function quarter(all, k) {
  const part = all
    .slice(Math.floor((k * all.length) / 4), Math.floor(((k + 1) * all.length) / 4))
    .sort((a, b) => a - b);
  return part[part.length >> 1] ?? NaN;
}
if (values.json) console.log(JSON.stringify(result, null, 2));
else {
  const { steps, settings, ...short } = result;
  console.log(
    JSON.stringify(
      {
        settings: Object.entries(settings)
          .map(pair => pair.join(' '))
          .join(', '),
        ...short,
      },
      null,
      1,
    ),
  );
  console.table(
    steps.map(step =>
      Object.fromEntries(
        Object.entries(step).map(([key, x]) => [key.replace('timing_s/', ''), Number(x?.toPrecision?.(3))]),
      ),
    ),
  );
}
