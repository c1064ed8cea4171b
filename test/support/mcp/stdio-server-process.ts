/** A server on its standard streams, written with the official library; what it is asked to do wrong, it does. */
import { execFileSync, spawn } from 'node:child_process';
import process from 'node:process';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const inputSchema = { type: 'object' as const, properties: {} };
const names = ['about', 'hang', 'lines', 'line', 'child', 'orphan'];
const said = (value: unknown) => ({ content: [{ type: 'text' as const, text: JSON.stringify(value) }] });
type Said = ReturnType<typeof said>;
const never = () => new Promise<Said>(() => undefined);
const calls: string[] = [];

const flood = (text: string): Promise<Said> => {
  const write = (): void => {
    while (process.stdout.write(text));
    process.stdout.once('drain', write);
  };
  write();
  return never();
};

const does: Readonly<Record<string, () => Said | Promise<Said>>> = {
  about: () =>
    said({ pid: process.pid, env: Object.keys(process.env).sort(), greeting: process.env['GREETING'], calls }),
  hang: never,
  lines: () => flood('not a message\n'.repeat(1000)),
  line: () => flood('x'.repeat(65_536)),
  // In a group and a session of its own.
  child: () => said({ pid: spawn('sleep', ['600'], { detached: true, stdio: 'ignore' }).pid }),
  // Likewise, and whoever has started it is gone.
  orphan: () =>
    said({
      pid: Number(
        execFileSync('sh', ['-c', 'setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $!'], { encoding: 'utf8' }),
      ),
    }),
};

const server = new Server({ name: 'local', version: '1.0.0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: names.map((name) => ({ name, inputSchema })) }));
server.setRequestHandler(CallToolRequestSchema, ({ params: { name } }) => {
  calls.push(name);
  return does[name]?.() ?? said(null);
});
process.stderr.write(`started as ${process.pid}\n`);
await server.connect(new StdioServerTransport());
