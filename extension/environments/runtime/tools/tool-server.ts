// A connection to one server of the Model Context Protocol, by the official SDK: a program that is started and speaks
// over standard input and output, or a server at a URL. A connection that ended stays ended. Failures of the server are
// FaultErrors, which end the episode; errors that the server reports for a call are ToolErrors, which the model sees.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { ToolError } from '../../../../envs/api/tools/tool';
import { tagVariable } from '../../../protocol/environment-link';
import { mostTools, type ToolServer } from '../../../protocol/tool-link';
import { FaultError } from '../threads/fault';
import { shown } from '../worker/returned-values';
import { boundedFetch } from './bounded-fetch';
import type { CallableTool } from './declared-tools';

/** Maximum bytes of one message of a server. */
const largestMessage = 4 * 2 ** 20;
/** Maximum number of lines or messages of a server that are not part of the protocol. */
const mostStrayMessages = 100;
/** Maximum pages of a server's list of tools. */
const mostPages = 32;

export class ToolServerConnection {
  /** Why the connection ended; undefined while it is open. */
  private ending: string | undefined;
  private stray = 0;

  private constructor(
    private readonly label: string,
    private readonly remedy: string,
    private readonly client: Client,
    private readonly limits: { startMs: number; callMs: number },
  ) {}

  /**
   * Connects to a server.
   * @param name name of the server in the configuration
   * @param callMs time limit of a call in milliseconds
   * @throws FaultError if the server does not start or does not speak the protocol
   */
  static async open(tag: string, name: string, server: ToolServer, callMs: number): Promise<ToolServerConnection> {
    // The SDK compiles the schemas of a server's results; results are texts here, so any result is accepted.
    const accept = {
      getValidator: () => (data: unknown) => ({ valid: true as const, data: data as never, errorMessage: undefined }),
    };
    const client = new Client({ name: 'ragen-workbench', version: '1' }, { jsonSchemaValidator: accept });
    const where = server.command === undefined ? server.url : server.command;
    const label = `has the tool server ${name} (${where}), which`;
    const remedy = `check custom_envs.${tag}.mcp_servers.${name} and the server's output`;
    const connection = new ToolServerConnection(label, remedy, client, { startMs: server.start_timeout_ms, callMs });
    client.onclose = () => connection.end('has ended or closed the connection');
    client.onerror = () => connection.countStray();
    try {
      await client.connect(transportOf(server), { timeout: server.start_timeout_ms });
    } catch (error) {
      await connection.close();
      throw connection.fault(`could not be reached (${shown((error as Error).message)})`);
    }
    return connection;
  }

  /** Whether calls can be sent. */
  get isOpen(): boolean {
    return this.ending === undefined;
  }

  /** Returns the server's tools. @throws FaultError if the server fails */
  async tools(): Promise<CallableTool[]> {
    const found: CallableTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < mostPages; page++) {
      const { tools, nextCursor } = await this.request(
        () => this.client.listTools(cursor === undefined ? {} : { cursor }, { timeout: this.limits.startMs }),
        'list its tools',
      );
      for (const { name, description = '', inputSchema, annotations } of tools)
        found.push({
          description: { name: name.replace(/[^\w-]/g, '_').slice(0, 64), description, parameters: inputSchema },
          parallel: annotations?.readOnlyHint === true,
          check: args => ({ args }),
          run: (args, { signal }) => this.call(name, args, signal),
          late: ms => this.fault(`did not answer a call of ${name} within ${ms} ms`),
        });
      if (found.length > mostTools) throw this.fault(`offers more than ${mostTools} tools`);
      if (nextCursor === undefined) return found;
      cursor = nextCursor;
    }
    throw this.fault('offers a list of tools without end');
  }

  async close(): Promise<void> {
    this.end('was closed');
    await this.client.close().catch(() => undefined);
  }

  private async call(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<string> {
    const options = { timeout: this.limits.callMs + 1000, signal }; // the limit of the turn comes first
    const result = await this.request(
      () => this.client.callTool({ name, arguments: args }, undefined, options),
      `call ${name}`,
    );
    const text = textOf(result as { content?: ContentPart[]; structuredContent?: unknown });
    if (result.isError === true) throw new ToolError(text || `${name} failed`);
    return text;
  }

  /** Sends a request. Errors of the call are ToolErrors; failures of the connection are FaultErrors. */
  private async request<T>(send: () => Promise<T>, what: string): Promise<T> {
    if (this.ending !== undefined) throw this.fault(this.ending);
    try {
      return await send();
    } catch (error) {
      if (this.ending !== undefined) throw this.fault(this.ending);
      const { message } = error as Error;
      if (isCallError(error)) throw new ToolError(shown(message));
      throw this.fault(`could not ${what} (${shown(message)})`);
    }
  }

  private countStray(): void {
    if (++this.stray < mostStrayMessages || !this.isOpen) return;
    this.end(`wrote ${mostStrayMessages} messages that are not of the Model Context Protocol`);
    void this.client.close().catch(() => undefined);
  }

  private end(reason: string): void {
    this.ending ??= reason;
  }

  private fault(what: string): FaultError {
    return new FaultError({ kind: 'threw', what: `${this.label} ${what}`, remedy: this.remedy });
  }
}

/** Whether the server refused the call itself: a wrong argument, or a tool that it has removed. */
const isCallError = (error: unknown): boolean => error instanceof McpError && callErrors.has(error.code);

const callErrors: ReadonlySet<number> = new Set([ErrorCode.InvalidParams, ErrorCode.MethodNotFound]);

function transportOf(server: ToolServer) {
  if (server.command === undefined) {
    const headers = { ...server.headers, ...valuesOf(server.headers_env) };
    const fetch = boundedFetch(largestMessage);
    return new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers }, fetch });
  }
  const { command, args, env, pass_env } = server;
  const passed = valuesOf(Object.fromEntries([...pass_env, tagVariable].map(name => [name, name])));
  const transport = new StdioClientTransport({
    command,
    args,
    env: { ...passed, ...env },
    stderr: 'pipe',
    maxBufferSize: largestMessage,
  });
  transport.stderr?.on('data', (text: Buffer) => process.stderr.write(text)); // goes to the run's log, within its limit
  return transport;
}

/** Replaces the names of environment variables by their values; unset variables are left out. */
function valuesOf(names: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(names).flatMap(([key, name]) => (process.env[name] === undefined ? [] : [[key, process.env[name]]])),
  );
}

interface ContentPart {
  type: string;
  text?: string;
  resource?: { text?: string };
}

/** Returns the texts of a result. The models read text only, so other parts are named in brackets. */
function textOf({ content = [], structuredContent }: { content?: ContentPart[]; structuredContent?: unknown }): string {
  const parts = content.map(({ type, text, resource }) => text ?? resource?.text ?? `[${type}]`);
  return parts.length === 0 && structuredContent !== undefined ? JSON.stringify(structuredContent) : parts.join('\n');
}
