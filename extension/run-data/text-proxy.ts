// How well the text-only proxy of I(X;Z) (`thoughts/prompt_information`) follows I(X;Z), as measured by
// test/experiments/text-proxy.ts. Shown wherever the proxy is shown; a unit test compares the figures with the
// measurement.

/** Spearman's rank correlation with I(X;Z) of first turns, its 95 % interval, and the diagnoses and runs behind it. */
export const textProxyFigures = { correlation: 0.89, low: 0.67, high: 0.97, diagnoses: 60, runs: 9 } as const;

/** The figures in one sentence without its full stop. */
export const textProxyNote = `rank correlation with I(X;Z) ${textProxyFigures.correlation} (${textProxyFigures.low} to ${textProxyFigures.high}) over ${textProxyFigures.diagnoses} diagnoses of ${textProxyFigures.runs} small runs`;
