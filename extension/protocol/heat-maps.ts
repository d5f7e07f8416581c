// Heat maps over the pictures of a stored episode, as the inspection process computes them and the Episodes page and the
// terminal show them.

/** The tokens of a turn whose log-prob a heat map explains: the complete response, its thought, or its answer. */
export const explainedParts = ['response', 'thought', 'answer'] as const;
export type ExplainedPart = (typeof explainedParts)[number];

/** How much the log-prob of a turn's tokens depends on the pictures that the turn's prompt shows. */
export interface TurnHeat {
  turn: number;
  /** Number of explained tokens; 0 if the turn has none, or if its prompt shows no picture. */
  tokens: number;
  /** Log-prob of these tokens, summed, in nats. */
  logprob: number;
  /** One map for each picture of the turn's state, in the order of its marks; empty if `tokens` is 0. */
  pictures: HeatMap[];
  /** Share of the sum of all squared values that belongs to pictures of earlier turns, 0…1. */
  earlier: number;
}

/** The cells of a picture, which cover it completely, row by row (models/vision/picture-attribution.ts). */
export interface HeatMap {
  rows: number;
  columns: number;
  /** In nats; at least 0. */
  values: number[];
}

export interface HeatMaps {
  /** Name of the checkpoint whose weights were used; `initial` for the initial weights. */
  checkpoint: string;
  part: ExplainedPart;
  turns: TurnHeat[];
}
