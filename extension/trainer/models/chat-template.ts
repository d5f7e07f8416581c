// The chat template of a model folder, rendered as transformers' apply_chat_template renders it: the same variables and functions,
// but for the date. strftime_now tells a fixed day, so that a run's prompts don't change at midnight and can be made again.
import { Template } from '@huggingface/jinja';
import { UserError } from '../../protocol/user-error';
import { correctTemplate, templateFunctions } from './jinja-corrections';
import { renderWithin } from './jinja-limits';

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

export interface ChatTemplateOptions {
  /** Further variables of the template, as apply_chat_template takes them: enable_thinking, date_string, … */
  variables?: Readonly<Record<string, unknown>>;
  /** The day, YYYY-MM-DD, whose midnight strftime_now tells. */
  today?: string;
}

/** The day that Llama 3's templates name themselves where they are told no other. */
const defaultDay = '2024-07-26';
const otherTemplate = 'use a model whose chat template takes system, user and assistant messages';
const specialTokens = ['bos_token', 'eos_token', 'unk_token', 'sep_token', 'pad_token', 'cls_token', 'mask_token'];

export class ChatTemplate {
  private readonly template: Template;
  private readonly variables: Readonly<Record<string, unknown>>;

  /**
   * @param folder only named in errors
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
      `${folder}: the chat template cannot be read`,
      otherTemplate,
    );
    correctTemplate(this.template);
    const day = new Date(`${today}T00:00:00Z`);
    if (Number.isNaN(day.getTime()))
      throw new UserError(`${folder}: the day of the chat template is ${today}: write it as ${defaultDay}`);
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

  /** The conversation as text. `addGenerationPrompt` ends it with the assistant's header. */
  render(messages: readonly ChatMessage[], addGenerationPrompt: boolean): string {
    const values = {
      ...this.variables,
      messages: messages.map(message => ({ ...message })),
      add_generation_prompt: addGenerationPrompt,
    };
    const letters = messages.reduce((sum, { content }) => sum + content.length, 0);
    return orSentence(
      () => renderWithin(this.template, values, { messages: messages.length, letters }),
      `${this.folder}: the chat template cannot be rendered`,
      otherTemplate,
    );
  }
}

/**
 * The source with \n for every \r\n and \r: Python reads text files so, and Jinja itself reads every source so, from wherever it is.
 */
const withPlainNewlines = (source: string): string => source.replace(/\r\n?/g, '\n');

/** A special token stands as its text or as an object with it. */
function specialToken(said: unknown): string | undefined {
  const token = typeof said === 'object' && said !== null && 'content' in said ? said.content : said;
  return typeof token === 'string' ? token : undefined;
}

/** What `work` returns; where it throws, a sentence made of what went wrong, the library's reason and the remedy. */
export function orSentence<T>(work: () => T, what: string, remedy: string): T {
  try {
    return work();
  } catch (error) {
    throw new UserError(`${what} (${(error as Error).message}): ${remedy}`);
  }
}
