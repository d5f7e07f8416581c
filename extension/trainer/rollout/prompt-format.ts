// The prompt formats of VAGEN (Wang et al., 2025): which parts an answer has, how the prompt asks for these parts, and
// the parsing of an answer. A format with a world model asks for a description of the present state (`<observation>`,
// grounding), of the state after the actions (`<prediction>`, worldmodeling), or both; the name's end tells the form of
// the descriptions. Pure. Invariant: an answer that departs from its format has no parts, so it executes no action.
import type { StateForms } from '../../../envs/api/environment';
import type { StateForm } from '../../../envs/api/state-forms';
import type { LoadedEnvironment } from '../../protocol/environment-link';
import type { AnswerTag } from '../../common/tagged-text';

/** Values of `custom_envs.<tag>.prompt_format`; VAGEN's names. Without an ending, descriptions are sentences. */
export const promptFormats = [
  'no_think',
  'free_think',
  'grounding',
  'worldmodeling',
  'grounding_worldmodeling',
  'grounding_structured',
  'worldmodeling_structured',
  'grounding_worldmodeling_structured',
  'grounding_symbolic',
  'worldmodeling_symbolic',
  'grounding_worldmodeling_symbolic',
] as const;

export type PromptFormat = (typeof promptFormats)[number];

/** A description of a state in an answer: of the state that the prompt shows, or of the state after the actions. */
export type DescribedPart = 'observation' | 'prediction';

/** The texts of an answer that follows its format, trimmed. */
export interface FormattedAnswer {
  /** Everything between the think tags; null with `no_think`. */
  thought: string | null;
  observation?: string;
  prediction?: string;
  answer: string;
}

/** Returns which states an answer describes, in the order of the parts. */
export const describedParts = (format: PromptFormat): DescribedPart[] => [
  ...(format.startsWith('grounding') ? (['observation'] as const) : []),
  ...(format.includes('worldmodeling') ? (['prediction'] as const) : []),
];

/** Returns the form of the descriptions. */
export const stateForm = (format: PromptFormat): StateForm =>
  format.endsWith('_structured') ? 'structured' : format.endsWith('_symbolic') ? 'symbolic' : 'natural_language';

/**
 * Returns the form in which an environment is asked for its true state; undefined if the format has no descriptions, or
 * if the environment does not give this form.
 */
export function askedForm(
  { state_forms }: Pick<LoadedEnvironment, 'state_forms'>,
  format: PromptFormat | null | undefined,
): StateForm | undefined {
  if (!format || describedParts(format).length === 0) return undefined;
  const form = stateForm(format);
  return state_forms && Object.hasOwn(state_forms, form) ? form : undefined;
}

/**
 * Returns the form in which the true states of an environment with pictures are recorded, if answers describe none;
 * undefined if the environment gives no form. A grid of symbols is preferred, because it has the picture's layout.
 */
export const recordedForm = ({ state_forms = {} }: Pick<LoadedEnvironment, 'state_forms'>): StateForm | undefined =>
  (['symbolic', 'structured', 'natural_language'] as const).find(form => Object.hasOwn(state_forms, form));

/** Tags inside `<think>`, in order; none if the thought is free text. */
function thoughtTags(format: PromptFormat): string[] {
  const parts = describedParts(format);
  if (parts.length === 0) return [];
  return [...parts.filter(part => part === 'observation'), 'reasoning', ...parts.filter(part => part === 'prediction')];
}

const placeholders: Readonly<Record<string, string>> = {
  observation: '[the state that you see]',
  reasoning: '[your thoughts]',
  prediction: '[the state after your actions]',
};

/** Returns the format with a placeholder for each text, as the prompt of each turn shows it. */
export function formatTemplate(format: PromptFormat, tag: AnswerTag = 'answer'): string {
  const answer = `<${tag}> [your answer] </${tag}>`;
  if (format === 'no_think') return answer;
  const inner = thoughtTags(format).map(name => `<${name}> ${placeholders[name]} </${name}>`);
  return `<think> ${inner.length > 0 ? inner.join(' ') : '[Your thoughts]'} </think> ${answer}`;
}

const generalForms: Readonly<Record<StateForm, string>> = {
  natural_language: 'sentences that say where things are, seen from the player',
  structured: 'a JSON object',
  symbolic: 'the grid of symbols, one row per line',
};

/**
 * Returns what the system message says about the descriptions; undefined if the format asks for none.
 * @param forms the environment's descriptions of the forms; a form that is missing has a general description
 */
export function formatDemand(format: PromptFormat, forms: StateForms = {}): string | undefined {
  const form = forms[stateForm(format)] ?? generalForms[stateForm(format)];
  const parts = describedParts(format);
  if (parts.length === 0) return undefined;
  const begin = parts.includes('observation') ? ['In <observation>, describe the state that you see.'] : [];
  const end = parts.includes('prediction') ? ['In <prediction>, describe the state that your actions lead to.'] : [];
  const whole = [...begin, 'In <reasoning>, think about what to do.', ...end].join(' ');
  return `${whole} Form of ${parts.length > 1 ? 'both descriptions' : 'the description'}: ${form}.`;
}

/**
 * Parses an answer that includes the generation prefix. Returns null if it departs from the format: between and around
 * the parts only white space is allowed, and no part may contain a tag of the format (VAGEN's strict pattern, which
 * permits tags inside parts).
 */
export function parseFormatted(raw: string, format: PromptFormat, tag: AnswerTag = 'answer'): FormattedAnswer | null {
  const text = raw.replaceAll('<|im_start|>', '').replaceAll('<|im_end|>', '');
  const outer = format === 'no_think' ? [tag] : ['think', tag];
  const inner = thoughtTags(format);
  const tags = [...outer, ...inner].flatMap(name => [`<${name}>`, `</${name}>`]);
  const found = sequence(text, outer);
  if (!found || holdsTag(found[tag], tags)) return null;
  if (format === 'no_think') return { thought: null, answer: found[tag].trim() };
  const thought = found.think.trim();
  const parts = inner.length > 0 ? sequence(thought, inner) : { thought };
  if (!parts || Object.values(parts).some(part => holdsTag(part, tags))) return null;
  return {
    thought,
    ...(parts.observation !== undefined && { observation: parts.observation.trim() }),
    ...(parts.prediction !== undefined && { prediction: parts.prediction.trim() }),
    answer: found[tag].trim(),
  };
}

/** Returns the texts between tags that follow each other with only white space between them; null otherwise. */
function sequence(text: string, names: readonly string[]): Record<string, string> | null {
  const found: Record<string, string> = {};
  let rest = text.trim();
  for (const name of names) {
    const [open, close] = [`<${name}>`, `</${name}>`];
    const end = rest.indexOf(close);
    if (!rest.startsWith(open) || end < 0) return null;
    found[name] = rest.slice(open.length, end);
    rest = rest.slice(end + close.length).trimStart();
  }
  return rest === '' ? found : null;
}

const holdsTag = (text: string, tags: readonly string[]): boolean => tags.some(tag => text.includes(tag));
