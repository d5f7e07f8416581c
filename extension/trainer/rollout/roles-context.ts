// The contexts of an episode with roles (envs/api/roles.ts): one EpisodeContext per role, in which the prompts show only
// the turns of this role. The engine holds one row of cached tokens per role. Turns are numbered over all roles, in the
// order in which they are played; samples and messages name their role.
import type { GeneratedRow } from '../../engine/generation-calls';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import type { EpisodeContext } from './context-manager';
import type { EpisodeEntry, TurnHistory } from './environment-state-manager';
import type { PlayedContext, PromptIds } from './played-context';
import type { RolloutSample } from './rollout-sample';
import type { TurnPrompt } from './turn-protocol';

/** A message for display; `name` is the role whose context contains it. */
export type RoleMessage = ChatMessage & { name?: string };

/** Returns the engine's row of an episode's next turn. */
export const rowOf = ({ id, role }: Pick<EpisodeEntry, 'id' | 'role'>): string =>
  role === undefined ? id : `${id}/${role}`;

/** Returns all rows of an episode. */
export const rowsOf = ({ id, environment: { roles } }: Pick<EpisodeEntry, 'id' | 'environment'>): string[] =>
  roles ? roles.map(({ name }) => rowOf({ id, role: name })) : [id];

/** Returns the turns that the role of the next turn has played; all turns in an episode without roles. */
export const ownTurns = ({ history, role }: Pick<EpisodeEntry, 'history' | 'role'>): readonly TurnHistory[] =>
  role === undefined ? history : history.filter(turn => turn.role === role);

export class RolesContext implements PlayedContext {
  readonly messages: RoleMessage[] = [];
  private readonly contexts = new Map<string, EpisodeContext>();
  /** Number of each context's messages that `messages` contains. */
  private readonly shown = new Map<string, number>();
  /** For each role, the numbers of its turns in the episode. */
  private readonly turns = new Map<string, number[]>();
  private played = 0;
  private role: string;

  /**
   * @param roles names in the order of their declaration
   * @param open creates the context of a role
   * @param isTrained whether the policy plays a role, so that its context is a sample
   */
  constructor(
    private readonly roles: readonly string[],
    private readonly open: (role: string) => EpisodeContext,
    private readonly isTrained: (role: string) => boolean = () => true,
  ) {
    [this.role] = roles;
  }

  get shortened(): boolean {
    return [...this.contexts.values()].some(({ shortened }) => shortened);
  }

  get refused(): number | undefined {
    return this.contexts.get(this.role)?.refused;
  }

  /**
   * Returns the ids of the prompt of a role's next turn; null if it leaves no room for a response.
   * @param own the turns that the role has played
   */
  prompt(role: string, prompt: TurnPrompt, own: readonly TurnHistory[]): PromptIds | null {
    this.role = role;
    const context = this.contexts.get(role) ?? this.open(role);
    this.contexts.set(role, context);
    const ids = context.prompt({ ...prompt, turn: own.length + 1 }, own);
    if (ids) this.show(context);
    return ids;
  }

  /** Records the response of the role whose prompt was asked for last. */
  accept(generated: Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'>): string {
    const context = this.contexts.get(this.role)!;
    const raw = context.accept(generated);
    this.turns.set(this.role, [...(this.turns.get(this.role) ?? []), ++this.played]);
    this.show(context);
    return raw;
  }

  samples(): RolloutSample[] {
    return this.roles.flatMap(role => {
      const numbers = this.turns.get(role);
      if (!numbers || !this.isTrained(role)) return [];
      return this.contexts
        .get(role)!
        .samples()
        .map(sample => ({
          ...sample,
          turns: sample.turns.map(({ turn, span }) => ({ turn: numbers[turn - 1], span })),
          role,
        }));
    });
  }

  private show({ messages }: EpisodeContext): void {
    const known = this.shown.get(this.role) ?? 0;
    for (const message of messages.slice(known)) this.messages.push({ ...message, name: this.role });
    this.shown.set(this.role, messages.length);
  }
}
