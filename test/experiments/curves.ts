// Draws a sweep's curves. Reads the comparison printed by `ragen sweep FILE --json` and the run folders named there,
// and writes the logged metrics as CSV (arm, seed, step, metric, value) and as an image with the mean and range over
// seeds. Usage, in the folder of the results: node dist/curves.cjs COMPARISON.json RUNS_FOLDER
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createCanvas } from '@napi-rs/canvas';
import { Chart, registerables } from 'chart.js';
import { z } from 'zod';
import { metricsLineSchema } from '../../extension/run-data/step-lines';
import { runFiles } from '../../extension/run-data/run-file-names';
import { partial } from '../support/partial';

/** Metrics with a panel each; a panel without values in any run is omitted. */
const panels: readonly { key: string; title: string }[] = [
  { key: 'val-env/QuickFrozenLake/success', title: 'validation success' },
  { key: 'rollout/in_group_reward_std', title: 'in-group reward std' },
  { key: 'actor/entropy', title: 'entropy' },
  { key: 'actor/grad_norm', title: 'gradient norm' },
  { key: 'response_length', title: 'response length' },
  { key: 'collapse_first_turn_sample/mi_estimate', title: 'mutual information, first turn' },
  { key: 'collapse_first_turn_sample/conditional_entropy_est', title: 'H(Z|X), first turn' },
  { key: 'collapse_first_turn_sample/retrieval_above_chance', title: 'retrieval above chance' },
];
const colours = ['#1f77b4', '#d95f02', '#2ca02c', '#7b3294'];
const [width, height, columns] = [460, 260, 2];

const comparisonSchema = z.object({
  sweep: z.string(),
  points: z.array(
    z.object({ label: z.string(), runs: z.array(z.object({ run: z.string().nullable(), seed: z.number() })) }),
  ),
});

interface Curve {
  arm: string;
  seed: number;
  /** Values by step, for each metric. */
  values: Map<string, Map<number, number>>;
}

function readCurves(comparison: z.infer<typeof comparisonSchema>, folder: string): Curve[] {
  return comparison.points.flatMap(({ label, runs }) =>
    runs.map(({ run, seed }): Curve => {
      if (run === null) throw new Error(`curves: ${label} with seed ${seed} was not run`);
      const values = new Map<string, Map<number, number>>(panels.map(({ key }) => [key, new Map<number, number>()]));
      for (const text of readFileSync(join(folder, run, runFiles.metrics), 'utf8')
        .trim()
        .split('\n')) {
        const line = metricsLineSchema.parse(JSON.parse(text));
        for (const { key } of panels) {
          const value = line[key] ?? line[`train/${key}`];
          if (typeof value === 'number') values.get(key)!.set(line.step, value);
        }
      }
      return { arm: label, seed, values };
    }),
  );
}

function csv(curves: readonly Curve[]): string {
  const rows = curves.flatMap(({ arm, seed, values }) =>
    [...values].flatMap(([key, steps]) =>
      [...steps].map(([step, value]) => [JSON.stringify(arm), seed, step, key, Number(value.toPrecision(6))].join()),
    ),
  );
  return ['arm,seed,step,metric,value', ...rows].join('\n') + '\n';
}

/** Mean, minimum and maximum over an arm's seeds at each step that all these seeds have. */
function spread(curves: readonly Curve[], key: string): { x: number; mean: number; least: number; most: number }[] {
  const own = curves.map(({ values }) => values.get(key)!);
  const steps = [...own[0].keys()].filter(step => own.every(values => values.has(step))).sort((a, b) => a - b);
  return steps.map(x => {
    const at = own.map(values => values.get(x)!);
    return { x, mean: at.reduce((sum, y) => sum + y, 0) / at.length, least: Math.min(...at), most: Math.max(...at) };
  });
}

function picture(curves: readonly Curve[]): Buffer {
  Chart.register(...registerables);
  const single = new Set(curves.map(({ arm }) => arm)).size === 1;
  const lineOf = ({ arm, seed }: Curve): string => (single ? `seed ${seed}` : arm);
  const lines = [...new Set(curves.map(lineOf))];
  const shown = panels.filter(({ key }) => curves.some(({ values }) => values.get(key)!.size > 1));
  const canvas = createCanvas(width * columns, height * Math.ceil(shown.length / columns));
  const context = canvas.getContext('2d');
  context.fillStyle = '#ffffff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  shown.forEach(({ key, title }, index) => {
    const datasets = lines.flatMap((name, a) => {
      const points = spread(
        curves.filter(curve => lineOf(curve) === name),
        key,
      );
      const line = { pointRadius: 0, borderColor: colours[a % colours.length], tension: 0 };
      const band = { ...line, borderWidth: 0, backgroundColor: `${colours[a % colours.length]}22` };
      return [
        { ...line, label: name, borderWidth: 2, data: points.map(({ x, mean }) => ({ x, y: mean })) },
        { ...band, label: '', data: points.map(({ x, most }) => ({ x, y: most })), fill: '+1' },
        { ...band, label: '', data: points.map(({ x, least }) => ({ x, y: least })) },
      ];
    });
    const panel = createCanvas(width, height);
    const chart = new Chart(partial<CanvasRenderingContext2D>(panel.getContext('2d')), {
      type: 'line',
      data: { datasets },
      options: {
        animation: false,
        responsive: false,
        devicePixelRatio: 1,
        scales: { x: { type: 'linear', title: { display: true, text: 'step' } } },
        plugins: {
          title: { display: true, text: title },
          legend: { display: index === 0, labels: { filter: item => item.text !== '', boxWidth: 14 } },
        },
      },
    });
    context.drawImage(panel, (index % columns) * width, Math.floor(index / columns) * height);
    chart.destroy();
  });
  return canvas.toBuffer('image/png');
}

const [file, runsFolder] = process.argv.slice(2);
const comparison = comparisonSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
const curves = readCurves(comparison, runsFolder);
const stem = basename(file).replace(/\.json$/, '');
writeFileSync(`${stem}.csv`, csv(curves));
writeFileSync(`${stem}.png`, picture(curves));
process.stdout.write(`${stem}: ${curves.length} runs of ${comparison.points.length} arms\n`);
