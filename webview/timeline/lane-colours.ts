// Colours of the lanes. The same lane has the same colour in the overview, in a step and in the legend.
import { episodeSpans, type Lane } from '../../extension/run-data/timeline';
import { hue, withAlpha } from '../shared/run-colours';
import type { Theme } from '../shared/theme';

const hues: Readonly<Record<Lane, number>> = {
  sampling: hue.blue,
  environments: hue.green,
  scoring: hue.sky,
  update: hue.vermillion,
  publishing: hue.yellow,
  diagnosis: hue.purple,
  validation: hue.orange,
  checkpoint: hue.grey,
  phases: hue.grey,
  requests: hue.blue,
  episodes: hue.grey,
};

/**
 * Opacity of lanes that have the hue of another lane. They are fainter, so that users can distinguish the two lanes.
 */
const opacities: Partial<Record<Lane, number>> = { phases: 0.45, requests: 0.6 };

export const laneColour = (lane: Lane, { palette }: Theme): string =>
  withAlpha(palette[hues[lane]], opacities[lane] ?? 1);

/** Maps each kind of span of an episode to the lane in whose colour such spans are drawn. */
const episodeLanes: Partial<Record<string, Lane>> = {
  [episodeSpans.sampling]: 'sampling',
  [episodeSpans.environment]: 'environments',
  [episodeSpans.reset]: 'environments',
};

/** Maps phases to the lane in whose colour they are drawn. */
const phaseLanes: Partial<Record<string, Lane>> = {
  gen: 'sampling',
  gen_max: 'sampling',
  old_log_prob: 'scoring',
  ref: 'scoring',
  values: 'scoring',
  update_actor: 'update',
  update_critic: 'update',
  collapse_metrics: 'diagnosis',
  gradient_analysis: 'diagnosis',
  testing: 'validation',
  save_checkpoint: 'checkpoint',
};

/** Whether an episode did nothing but wait during a span. Such spans are drawn thin. */
export const isWait = (lane: Lane, name: string): boolean =>
  lane === 'episodes' && (name === episodeSpans.batchWait || name === episodeSpans.waveWait);

export function spanColour(lane: Lane, name: string, theme: Theme): string {
  if (lane === 'phases') return laneColour(phaseLanes[name] ?? 'phases', theme);
  if (lane !== 'episodes') return laneColour(lane, theme);
  if (isWait(lane, name)) return withAlpha(theme.palette[hue.grey], 0.5);
  const of = episodeLanes[name];
  return of ? laneColour(of, theme) : theme.palette[hue.sky];
}
