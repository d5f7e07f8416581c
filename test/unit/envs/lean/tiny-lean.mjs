// A stand-in for Lean that speaks its servers' protocols exactly and knows only the proofs of the shipped theorems:
// their tactics succeed in order, `sorry` is a sorry, `slow` never ends, anything else is an unknown tactic. As a REPL:
// node tiny-lean.mjs. As a Kimina server: node tiny-lean.mjs --http, which prints its port and then each request as a
// line.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { argv, stdin, stdout } from 'node:process';

const theorems = readFileSync(new URL('../../../../media/data/lean.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map(line => JSON.parse(line));

/** The REPL's reply to a command; undefined when Lean would not terminate. */
function reply({ cmd, env }, states) {
  if (env !== undefined && !(env in states)) return { message: 'Unknown environment.' };
  const lines = cmd.split('\n');
  const imports = lines.filter(line => line.startsWith('import '));
  const known = [...(env === undefined ? [] : states[env]), ...imports];
  const state = { env: states.push(known) - 1 };
  const at = lines.findIndex(line => /^(theorem|example)\b/.test(line));
  if (at < 0) return imports.includes('import Nowhere') ? { message: 'unknown module prefix Nowhere' } : state;
  const name = lines[at].split(' ')[1];
  const proof = lines[at].startsWith('example : True') ? ['trivial'] : theorems.find(each => each.name === name)?.proof;
  if (!proof) return { message: `unknown theorem ${name}` };
  if (proof[0] !== 'trivial' && !known.includes('import Mathlib')) return { message: 'unknown package Mathlib' };
  const tactics = lines.slice(at + 1).filter(line => line.trim() !== '');
  const span = (index, length) => ({
    pos: { line: at + 2 + index, column: 2 },
    endPos: { line: at + 2 + index, column: 2 + length },
  });
  for (const [i, line] of tactics.entries()) {
    const tactic = line.slice(2);
    if (tactic === 'slow') return undefined;
    if (tactic === 'sorry')
      return {
        sorries: [{ ...span(i, 5), goal: '⊢ p', proofState: 0 }],
        messages: [
          {
            severity: 'warning',
            data: "declaration uses 'sorry'",
            pos: { line: at + 1, column: 8 },
            endPos: { line: at + 1, column: 16 },
          },
        ],
        ...state,
      };
    if (tactic !== proof[i])
      return {
        messages: [{ severity: 'error', data: `unknown tactic\n\n${tactic}`, ...span(i, tactic.length) }],
        ...state,
      };
  }
  if (tactics.length === proof.length) return state;
  const by = {
    pos: { line: at + 1, column: lines[at].length - 2 },
    endPos: { line: at + 1, column: lines[at].length },
  };
  return { messages: [{ severity: 'error', data: 'unsolved goals\n⊢ p', ...by }], ...state };
}

if (argv.includes('--http')) {
  // eslint-disable-next-line @typescript-eslint/no-misused-promises -- a rejection ends this process, and the test fails
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { url, method, headers } = request;
    stdout.write(
      `${JSON.stringify({ url, method, authorization: headers.authorization, body: text === '' ? null : JSON.parse(text) })}\n`,
    );
    const answer = (status, body) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (url === '/health') return answer(200, { status: 'ok' });
    if (url !== '/api/check' || method !== 'POST') return answer(404, { detail: 'Not Found' });
    if (headers.authorization === 'Bearer wrong') return answer(401, { detail: 'Invalid or missing API key' });
    const { snippets, timeout, debug } = JSON.parse(text);
    const results = snippets.map(({ id, code }) => {
      const said = reply({ cmd: code }, []);
      const diagnostics = debug ? { repl_uuid: 'tiny', cpu_max: 0.5, memory_max: 1 } : null;
      if (said === undefined)
        return {
          id,
          time: timeout,
          error: `Lean REPL command timed out in ${timeout} seconds`,
          response: null,
          diagnostics,
        };
      return { id, time: 0.01, error: null, response: said, diagnostics };
    });
    answer(200, { results });
  });
  server.listen(0, '127.0.0.1', () => stdout.write(`${server.address().port}\n`));
} else {
  const states = [];
  let buffer = '';
  stdin.setEncoding('utf8').on('data', text => {
    buffer += text;
    for (let at = buffer.indexOf('\n\n'); at >= 0; at = buffer.indexOf('\n\n')) {
      const command = JSON.parse(buffer.slice(0, at));
      buffer = buffer.slice(at + 2);
      const said = reply(command, states);
      if (said === undefined) for (;;);
      if (command.cmd.includes('crash')) process.exit(3);
      stdout.write(`${JSON.stringify(said, null, 1)}\n\n`);
    }
  });
}
