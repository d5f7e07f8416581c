// Programs of the model as a tool, in real isolation.
import { expect, it } from 'vitest';
import { codeTool, requireCode, type Interpreter } from '../../../../envs/api/tools/code-tool';
import { callAction } from '../../../../envs/api/tools/call-action';
import { declaredTools } from '../../../../extension/environments/runtime/tools/declared-tools';
import { callsIn, withTools } from '../../../../extension/environments/runtime/tools/tool-environment';

const python: Interpreter = {
  language: 'python',
  path: null,
  isolation: 'bubblewrap',
  limits: { seconds: 2, megabytes: 256 },
};

async function run(
  code: string,
  more: { interpreter?: Interpreter; stdin?: string } = {},
): Promise<[result: string, error: boolean]> {
  const { interpreter = python, ...given } = more;
  const tools = declaredTools({ run: codeTool(interpreter) });
  const step = () => ({ observation: '', reward: 0, terminated: true, truncated: false, info: {} });
  const environment = withTools({ reset: () => ({ observation: '' }), step }, () => tools);
  const played = await environment.step(callAction([{ name: 'run', arguments: { code, ...given } }]));
  const [{ result, error }] = callsIn(played)!;
  return [result, error];
}

it('returns what a program prints', async () => {
  await requireCode(python);
  expect(await run('print(sum(range(10)))')).toEqual(['45\n', false]);
  expect(await run('print(input()[::-1])', { stdin: 'abc\n' })).toEqual(['cba\n', false]);
  expect(
    await run('console.log(2 ** 10)', {
      interpreter: { ...python, language: 'javascript', limits: { seconds: 5, megabytes: 512 } },
    }),
  ).toEqual(['1024\n', false]);
});

it('says why a program failed', async () => {
  expect(await run('print(1)\nprint(x)')).toEqual([
    "Error: the program ended with exit code 1 (NameError: name 'x' is not defined). It printed:\n1\n",
    true,
  ]);
  expect(await run('while True: pass')).toEqual(['Error: the program did not end within 2 seconds.', true]);
});

it('lets a program reach neither the network nor the files of this machine', async () => {
  const [network] = await run("import socket\nsocket.create_connection(('127.0.0.1', 80), 1)");
  expect(network).toMatch(/^Error: the program ended with exit code 1 \((Permission|OS|Connection\w*)Error/);
  const [file] = await run(`print(open(${JSON.stringify(__filename)}).read())`);
  expect(file).toMatch(/FileNotFoundError/);
  expect((await run("open('/etc/x', 'w')"))[0]).toMatch(/(PermissionError|OSError|FileNotFoundError)/);
});
