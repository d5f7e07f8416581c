// A server of the Model Context Protocol, made with the official SDK, whose tools behave well and badly. Run:
// node mcp-server.mjs stdio | node mcp-server.mjs http (prints its port).
import { createServer } from 'node:http';
import { argv, env, exit, pid, stdout } from 'node:process';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const text = value => ({ content: [{ type: 'text', text: String(value) }] });
let count = 0;

function makeServer() {
  const server = new McpServer({ name: 'behaviours', version: '1' });
  const tool = (name, run, inputSchema = {}, annotations = {}) =>
    server.registerTool(name, { description: `Does ${name}.`, inputSchema, annotations }, run);
  tool('add', ({ a, b }) => text(a + b), { a: z.number(), b: z.number() }, { readOnlyHint: true });
  tool('count', () => text(++count));
  tool('pid', () => text(pid));
  tool('variable', ({ name }) => text(env[name] ?? 'unset'), { name: z.string() });
  tool('header', (_, extra) => text(extra.requestInfo?.headers.authorization ?? 'none'));
  tool('refuse', () => ({ ...text('not today'), isError: true }));
  tool('picture', () => ({
    content: [
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'text', text: 'seen' },
    ],
  }));
  tool('dotted.name', () => text('named'));
  tool('die', () => exit(3));
  tool('hang', () => new Promise(() => undefined));
  tool('junk', () => {
    for (let i = 0; i < 1000; i++) stdout.write('this is not JSON\n');
    return new Promise(() => undefined);
  });
  tool('flood', () => {
    const block = 'x'.repeat(2 ** 20);
    for (let i = 0; i < 40; i++) stdout.write(block);
    return new Promise(() => undefined);
  });
  tool('huge', () => text('y'.repeat(20 * 2 ** 20)));
  return server;
}

if (argv[2] === 'stdio') await makeServer().connect(new StdioServerTransport());
else {
  const answer = async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on('close', () => void transport.close());
    await makeServer().connect(transport);
    await transport.handleRequest(request, response);
  };
  const http = createServer((request, response) => void answer(request, response));
  http.listen(0, '127.0.0.1', () => stdout.write(`${http.address().port}\n`));
}
