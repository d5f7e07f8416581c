// Renders the chat template of a model folder like transformers' apply_chat_template, with the same variables and
// functions. There is one exception: strftime_now returns a fixed day, so that prompts are reproducible and do not
// change at midnight.
import { Template } from '@huggingface/jinja';
import { UserError } from '../../common/user-error';
import { correctTemplate, templateFunctions } from './jinja-corrections';
import { renderWithin } from './jinja-limits';

export interface ChatMessage {
  /** A message of role `tool` is the result of a tool call. */
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string;
  /** The content as texts and pictures; takes the place of `content` in templates of vision-language models. */
  parts?: readonly ({ type: 'text'; text: string } | { type: 'image' })[];
  /** Tool calls of a message of role `assistant`, for templates that render them. */
  tool_calls?: { type: 'function'; function: { name: string; arguments: Record<string, unknown> } }[];
}

/** Returns the messages after a response; a text is a user message. */
export const nextMessages = (next: string | readonly ChatMessage[]): readonly ChatMessage[] =>
  typeof next === 'string' ? [{ role: 'user', content: next }] : next;

/** A tool in the form that chat templates expect. */
export interface ChatTool {
  type: 'function';
  function: { name: string; description: string; parameters: Record<string, unknown> };
}

export interface ChatTemplateOptions {
  /** Additional template variables, as in apply_chat_template: enable_thinking, date_string, … */
  variables?: Readonly<Record<string, unknown>>;
  /** The day (YYYY-MM-DD) that strftime_now formats; the time is midnight. */
  today?: string;
}

/** Default date, the same as in Llama 3's templates. */
const defaultDay = '2024-07-26';
const otherTemplate = 'use a model whose chat template takes system, user and assistant messages';
const specialTokens = ['bos_token', 'eos_token', 'unk_token', 'sep_token', 'pad_token', 'cls_token', 'mask_token'];

export class ChatTemplate {
  private readonly template: Template;
  private readonly variables: Readonly<Record<string, unknown>>;

  /**
   * @param folder used in error messages only
   * @param tokenizerConfig content of tokenizer_config.json, for the special tokens
   */
  constructor(
    source: string,
    private readonly folder: string,
    tokenizerConfig: Readonly<Record<string, unknown>>,
    { variables, today = defaultDay }: ChatTemplateOptions = {},
  ) {
    this.template = orSentence(
      () => new Template(withPlainNewlines(source)),
      `${folder}: the chat template cannot be parsed`,
      otherTemplate,
    );
    correctTemplate(this.template);
    const day = new Date(`${today}T00:00:00Z`);
    if (Number.isNaN(day.getTime()))
      throw new UserError(`${folder}: the date of the chat template is ${today}: use the form ${defaultDay}`);
    this.variables = {
      ...Object.fromEntries(
        specialTokens.flatMap(name => {
          const token = specialToken(tokenizerConfig[name]);
          return token === undefined ? [] : [[name, token]];
        }),
      ),
      tools: null,
      documents: null,
      ...templateFunctions(day),
      ...variables,
    };
  }

  /**
   * Renders the conversation as text; with `addGenerationPrompt`, followed by the assistant header.
   * @param tools the tools that the model may call, as the template's variable `tools`; null by default
   */
  render(messages: readonly ChatMessage[], addGenerationPrompt: boolean, tools: readonly ChatTool[] = []): string {
    const values = {
      ...this.variables,
      messages: messages.map(({ parts, ...message }) => ({ ...message, ...(parts && { content: parts }) })),
      add_generation_prompt: addGenerationPrompt,
      ...(tools.length > 0 && { tools }),
    };
    const described = tools.length > 0 ? JSON.stringify(tools).length : 0;
    const letters = messages.reduce(
      (sum, { content, tool_calls }) => sum + content.length + (tool_calls ? JSON.stringify(tool_calls).length : 0),
      described,
    );
    return orSentence(
      () => renderWithin(this.template, values, { messages: messages.length + tools.length, letters }),
      `${this.folder}: the chat template cannot be rendered`,
      otherTemplate,
    );
  }
}

/**
 * Replaces \r\n and \r by \n. Python does the same when it reads a text file; Jinja does the same when it parses a
 * template.
 */
const withPlainNewlines = (source: string): string => source.replace(/\r\n?/g, '\n');

/**
 * Returns the text of a special token. `said` may be this text, or an object with the text in `content`; for any other
 * value, returns undefined.
 */
function specialToken(said: unknown): string | undefined {
  const token = typeof said === 'object' && said !== null && 'content' in said ? said.content : said;
  return typeof token === 'string' ? token : undefined;
}

/**
 * Returns the result of `work`. An exception is rethrown as a UserError that names the failed operation, the library's
 * reason and the remedy.
 */
export function orSentence<T>(work: () => T, what: string, remedy: string): T {
  try {
    return work();
  } catch (error) {
    throw new UserError(`${what} (${(error as Error).message}): ${remedy}`);
  }
}
