// The live table of a run: one row per step (success, reward, in-group reward std, entropy, tokens/s) above one
// progress bar. Without a TTY (a log file, CI), only the rows are written. An evaluation has no steps, so its bar
// counts episodes. Without a TTY, an evaluation writes a line after each tenth of its episodes.
import { MultiBar, Presets } from 'cli-progress';
import type { SingleBar } from 'cli-progress';
import type { MetricsLine } from '../../run-data/step-lines';
import type { RunEvent } from '../../run-data/run-events';
import type { RunStatus } from '../../run-data/run-status-file';
import { progressOf } from '../../run-data/run-progress';
import type { RunProgress } from '../../run-data/run-progress';
import { trainingSuccess, validationSuccess } from '../../trainer/loop/metric-statistics';
import { downloadBar, megabytes, showDownload } from '../model-files/fetch-model';
import { DiagnosisHistory, formatFinding, formatRegime } from './run-findings';

const columns = [
  { title: 'step', width: 5 },
  { title: 'success', width: 8 },
  { title: 'reward', width: 8 },
  { title: 'in-group std', width: 13 },
  { title: 'entropy', width: 8 },
  { title: 'tokens/s', width: 9 },
  { title: 'validation', width: 11 },
];

export class StepTable {
  private readonly bars: MultiBar | null;
  private bar: SingleBar | undefined;
  private download: SingleBar | undefined;
  private fetching = false;
  private headed = false;
  private done = 0;
  /** Number of tenths of an evaluation's episodes that were reported as finished, 0…10. */
  private tenths = 0;
  private readonly diagnoses = new DiagnosisHistory();
  /** Caption of the last printed diagnosis. */
  private caption: string | undefined;
  /** The last printed reason why the trainer paused the run. */
  private waits: string | undefined;

  constructor(
    private readonly counts: RunProgress['unit'] = 'step',
    private readonly out: NodeJS.WriteStream = process.stderr,
  ) {
    this.bars = out.isTTY
      ? new MultiBar(
          {
            format: '{bar} {value}/{total} · {phase} {left}',
            hideCursor: true,
            clearOnComplete: true,
            stream: out,
            barsize: 24,
          },
          Presets.shades_classic,
        )
      : null;
  }

  row(line: MetricsLine): void {
    if (this.counts === 'episode') return; // the result of an evaluation is printed at its end
    if (!this.headed) {
      this.print(columns.map(({ title, width }) => title.padStart(width)).join(' '));
      this.headed = true;
    }
    const metrics = Object.fromEntries(
      Object.entries(line).filter((e): e is [string, number] => typeof e[1] === 'number'),
    );
    const cells = [
      String(line.step),
      percent(trainingSuccess(metrics)),
      fixed(metrics['train/charts/avg_episode_return'] ?? metrics['charts/avg_episode_return']),
      fixed(metrics['rollout/in_group_reward_std']),
      fixed(metrics['actor/entropy']),
      metrics['perf/throughput'] === undefined ? '' : Math.round(metrics['perf/throughput']).toLocaleString('en-US'),
      percent(validationSuccess(metrics)),
    ];
    this.print(cells.map((cell, i) => cell.padStart(columns[i].width)).join(' '));
    const diagnosed = this.diagnoses.add(line.step, metrics);
    if (diagnosed && diagnosed.caption !== this.caption)
      this.print(`diagnosis at step ${line.step}: ${formatRegime(diagnosed)}`);
    if (diagnosed) this.caption = diagnosed.caption;
  }

  /** Prints a line for an alarm or an early stop. */
  event(event: RunEvent): void {
    const finding = formatFinding(event);
    if (finding !== null) this.print(finding);
  }

  /** Updates the bar; `fraction` is the completed share of the current phase, 0…1. */
  progress(status: RunStatus, fraction: number): void {
    const share = fraction > 0 && fraction < 1 ? ` ${Math.round(fraction * 100)} %` : '';
    this.show(status, status.activity === undefined ? share : `${share} (${status.activity})`);
  }

  status(status: RunStatus): void {
    if (progressOf(status).done !== this.done || !this.bar || this.fetching) this.show(status, '');
  }

  note(text: string): void {
    this.print(text);
  }

  close(): void {
    this.bars?.stop();
  }

  private show(status: RunStatus, detail: string): void {
    this.showModel(status);
    if (status.state === 'paused' && status.error !== undefined && status.error !== this.waits)
      this.print(`The run is paused: ${status.error}`);
    this.waits = status.state === 'paused' ? status.error : undefined;
    const { unit, done, of } = progressOf(status);
    if (!this.bars) return this.reportEpisodes(unit, done, of);
    const eta = status.eta_s === null || status.download ? '' : `· about ${Math.ceil(status.eta_s)} s left`;
    const doing = status.state !== 'running' ? status.state : unit === 'episode' ? 'episodes' : status.phase;
    const payload = { phase: `${doing}${detail}`, left: eta };
    this.bar ??= this.bars.create(of, done, payload);
    this.bar.setTotal(of);
    this.bar.update(done, payload);
    this.done = done;
  }

  private reportEpisodes(unit: RunProgress['unit'], done: number, of: number): void {
    const tenths = of > 0 ? Math.floor((10 * done) / of) : 0;
    if (unit !== 'episode' || tenths <= this.tenths) return;
    this.tenths = tenths;
    this.print(`${done}/${of} episodes`);
  }

  /** Shows a separate bar while the model is fetched; without a TTY, prints one line. */
  private showModel({ download }: RunStatus): void {
    if (download && !this.fetching) this.print(`Fetching the model (${megabytes(download.total)})`);
    this.fetching = download !== undefined;
    if (download && this.bars) {
      this.download ??= this.bars.create(download.total, 0, { file: '', size: '' }, downloadBar);
      showDownload(this.download, download);
    } else if (this.download) {
      this.bars?.remove(this.download);
      this.download = undefined;
    }
  }

  private print(text: string): void {
    if (this.bars && this.bar) this.bars.log(`${text}\n`);
    else this.out.write(`${text}\n`);
  }
}

const percent = (share: number | null): string => (share === null ? '' : `${(share * 100).toFixed(1)} %`);
const fixed = (x: number | undefined): string => (x === undefined ? '' : x.toFixed(3));
