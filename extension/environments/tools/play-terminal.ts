// A play session in a terminal. Prints the state after each input. The user types an action (its name or free text), or
// a command that begins with a colon. The session ends with `:quit`, Ctrl-D or the end of standard input.
import { createInterface } from 'node:readline';
import type { PlayDo, PlayedStep, PlayReply, PlaySession } from '../../protocol/environment-tools';
import type { Session } from './play-session';

const help = ':undo  :restart  :seed N  :hint  :solve  :reload (after an edit)  :quit';

/** Plays until the user quits. */
export async function playInTerminal(session: Session): Promise<void> {
  const say = (text: string) => process.stdout.write(`${text}\n`);
  const begun = await session.answer(0, { do: 'reload' });
  if (begun.session) say(opening(begun.session));
  say(formatState(begun));
  // The readline interface is not created earlier, because it would lose the lines that the user enters before the loop
  // below starts.
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' });
  lines.prompt();
  for await (const line of lines) {
    const asked = request(line);
    if (asked === 'quit') break;
    if (asked === 'help') say(help);
    else if (asked) say(formatState(await session.answer(0, asked), asked));
    lines.prompt();
  }
  lines.close();
}

function request(line: string): PlayDo | 'quit' | 'help' | undefined {
  const text = line.trim();
  if (text === '') return undefined;
  const [, word, rest] = /^:(\w+)\s*(.*)$/.exec(text) ?? [];
  const known = { u: 'undo', r: 'restart', h: 'hint', q: 'quit', s: 'solve' } as Record<string, string>;
  switch (known[word] ?? word) {
    case undefined:
      return { do: 'act', action: text };
    case 'undo':
      return { do: 'undo' };
    case 'restart':
      return { do: 'restart' };
    case 'seed':
      return /^\d+$/.test(rest) ? { do: 'restart', seed: Number(rest) } : 'help';
    case 'hint':
      return { do: 'hint' };
    case 'solve':
      return { do: 'solve' };
    case 'reload':
      return { do: 'reload' };
    case 'quit':
      return 'quit';
    default:
      return 'help';
  }
}

function opening({ environment, version, seed, instruction, legend, actions, roles = [] }: PlaySession): string {
  const meanings = Object.entries(legend).map(([symbol, meaning]) => `${symbol} ${meaning}`);
  const named = actions.map(({ id, name }) => `${name} (${id})`);
  return [
    `${environment} ${version}, seed ${seed}`,
    ...(instruction ? ['', instruction] : []),
    ...(roles.length > 0 ? ['', `Roles: ${roles.map(({ name }) => name).join(', ')}`] : []),
    ...roles.flatMap(role => (role.instruction === undefined ? [] : ['', `${role.name}: ${role.instruction}`])),
    ...(meanings.length > 0 ? ['', meanings.join(', ')] : []),
    '',
    named.length > 0 ? `Actions: ${named.join(', ')}` : 'Type your answer.',
    help,
    '',
  ].join('\n');
}

/** Returns the text to print after a request. */
function formatState({ session, error }: PlayReply, asked?: PlayDo): string {
  if (error) return error.message;
  if (!session) return '';
  if (asked?.do === 'hint')
    return session.hint ? `Solver: ${session.hint.join(', ')}` : 'The solver cannot solve the current state.';
  const last = session.steps.at(-1);
  const differences = session.reloaded?.differences.map(
    ({ step, what, before, after }) => `step ${step}, ${what}: ${JSON.stringify(before)} → ${JSON.stringify(after)}`,
  );
  return [
    (last ?? session.first).observation,
    '',
    ...(last ? [formatReply(session, last)] : [`Seed ${session.seed}.`]),
    ...turnOf(session),
    ...(differences ? [differences.length > 0 ? differences.join('\n') : 'The new code gives the same episode.'] : []),
  ].join('\n');
}

/** Returns a line with the role whose turn is next and its actions; nothing in an environment without roles. */
function turnOf({ first, steps, actions }: PlaySession): string[] {
  const { role } = steps.at(-1) ?? first;
  if (role === undefined) return [];
  const named = actions.map(({ id, name }) => `${name} (${id})`).join(', ');
  return [`Turn of ${role}${named === '' ? '' : `: ${named}`}.`];
}

function formatReply(
  { steps, total, over, roles }: PlaySession,
  { name, reward, terminated, truncated, info, acted, earned }: PlayedStep,
) {
  const end = [terminated && 'terminated', truncated && 'truncated'].filter(Boolean).join(' and ');
  const facts = Object.entries(info).map(([key, value]) => `${key} ${JSON.stringify(value)}`);
  const ending = over ? ` The episode is over (${end}): :undo, :restart or :seed N.` : '';
  const sums = roles
    ? `reward ${byRole(Object.entries(earned ?? {}))}, total ${byRole(roles.map(role => [role.name, role.total]))}`
    : `reward ${number(reward)}, total ${number(total)}`;
  return `${steps.length}. ${acted === undefined ? '' : `${acted}, `}${name}: ${sums}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}.${ending}`;
}

/** Returns amounts by role, such as `first 1 · second -1`. */
const byRole = (amounts: readonly [role: string, amount: number][]): string =>
  amounts.map(([role, amount]) => `${role} ${number(amount)}`).join(' · ');

const number = (value: number): string => String(Number(value.toPrecision(6)));
