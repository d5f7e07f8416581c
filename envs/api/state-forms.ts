// The forms in which an answer describes states of an environment (VAGEN's representations). With a prompt format that
// asks for descriptions, the model writes the present state and the state that it predicts in one of these forms.

/** `natural_language`: sentences; `structured`: a JSON object; `symbolic`: the grid of symbols. */
export type StateForm = (typeof stateForms)[number];

export const stateForms = ['natural_language', 'structured', 'symbolic'] as const;
