// Encodes and decodes text with @huggingface/tokenizers. Models are trained on the ids of the Rust tokenizers library.
// @huggingface/tokenizers differs from that library in three points. The differences are corrected here: added tokens
// are found by added-tokens.ts; the Digits splitter isolates every numeric character (½, Ⅷ and ², not only 7);
// ByteLevel's pattern uses Unicode white space. Tested against transformers in
// test/unit/models/{chat-families,added-tokens}.
import {
  BPE,
  ByteLevelPreTokenizer,
  DigitsPreTokenizer,
  SequencePreTokenizer,
  Tokenizer,
} from '@huggingface/tokenizers';
import { AddedTokens } from './added-tokens';
import type { AddedToken } from './added-tokens';
import type { PreTokenizer } from '@huggingface/tokenizers';

/**
 * Maximum characters of a piece whose merges are cached. The limit is high, because a tokenizer that merges across
 * spaces treats a whole fixed passage of a prompt as one piece.
 */
const longestRememberedPiece = 2048;

/** GPT-2's pattern for splitting text into pieces, with Unicode white space. */
const byteLevelPattern =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

export class TextEncoder {
  private readonly tokenizer: Tokenizer;
  /**
   * `plain` tokens are matched in the original text. `normalized` tokens are matched in the normalised text between the
   * plain tokens.
   */
  private readonly plain: AddedTokens;
  private readonly normalized: AddedTokens;

  /**
   * @param source content of tokenizer.json
   * @param config content of tokenizer_config.json
   * @throws Error from the package if the package cannot use the files
   */
  constructor(source: object, config: Readonly<Record<string, unknown>>) {
    this.tokenizer = new Tokenizer(source, config);
    const { model, pre_tokenizer, normalizer } = this.tokenizer;
    if (model instanceof BPE) model.max_length_to_cache = longestRememberedPiece;
    correctPatterns(pre_tokenizer);
    const added = (source as { added_tokens?: AddedToken[] }).added_tokens ?? [];
    const isNormalized = (token: AddedToken): boolean => token.normalized ?? !token.special;
    this.plain = new AddedTokens(added.filter(token => !isNormalized(token)));
    this.normalized = new AddedTokens(
      added
        .filter(isNormalized)
        .map(token => ({ ...token, content: normalizer ? normalizer._call(token.content) : token.content })),
    );
  }

  /** Returns the ids of a text, without adding special tokens. */
  encode(text: string): number[] {
    const { normalizer } = this.tokenizer;
    const ids: number[] = [];
    let atStart = true;
    for (const piece of this.plain.split(text)) {
      if (typeof piece === 'number') ids.push(piece);
      else
        for (const part of this.normalized.split(normalizer ? normalizer._call(piece) : piece)) {
          if (typeof part === 'number') ids.push(part);
          else for (const id of this.encodePart(part, atStart)) ids.push(id);
          atStart = false;
        }
      atStart = false;
    }
    return ids;
  }

  /** Decodes one or more ids; special tokens are omitted unless `special`. */
  decode(ids: readonly number[], special: boolean): string {
    return this.tokenizer.decode([...ids], { skip_special_tokens: !special, clean_up_tokenization_spaces: false });
  }

  private encodePart(text: string, atStart: boolean): number[] {
    const model = this.tokenizer.model!;
    const pieces = this.tokenizer.pre_tokenizer?._call(text, { section_index: atStart ? 0 : 1 }) ?? [text];
    return model._call(pieces).flatMap(token => model.tokens_to_ids.get(token) ?? model.unk_token_id ?? []);
  }
}

function correctPatterns(splitter: PreTokenizer | null): void {
  if (splitter instanceof SequencePreTokenizer) splitter.tokenizers.forEach(correctPatterns);
  if (splitter instanceof ByteLevelPreTokenizer) splitter.pattern = byteLevelPattern;
  if (splitter instanceof DigitsPreTokenizer)
    splitter.pattern = splitter.config.individual_digits ? /\P{N}+|\p{N}/gu : /\P{N}+|\p{N}+/gu;
}
