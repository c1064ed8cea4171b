import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from './load.ts';
import { type Program, type Server, startAcp, startServer } from './servers.ts';
import { measureTurns, type Side, type Turns, type TurnsOptions } from './turns.ts';
import { type Answer, acpFolder, modelCall } from './workspace.ts';

/* A gateway of models that many use on Node: it passes requests on and stores nothing. */

const gatewayPackage = '@portkey-ai/gateway@1.15.2';
// The lowest version that it names: with those that npm takes by itself it answers no stream, since it changes headers that must not be changed.
const overrides = { '@hono/node-server': '1.3.3' };
const startTimeoutMs = 30_000;

/** How the chats are answered: all streamed, all whole, or one so and the next one so. */
export type GatewayAnswers = Answer | 'both';

/** The gateway first, which the other side is compared with. */
export interface GatewayTurns {
  readonly answers: GatewayAnswers;
  readonly turns: readonly Turns[];
}

/** Where it is installed, with its own dependencies and without their scripts; null: it cannot be had here. */
const install = (folder: string, note: (text: string) => void): string | null => {
  const cwd = join(folder, 'gateway');
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'package.json'), JSON.stringify({ private: true, overrides }));
  try {
    const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-save', gatewayPackage];
    execFileSync('npm', args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
    return cwd;
  } catch (error) {
    note(
      `${gatewayPackage} could not be installed: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`,
    );
    return null;
  }
};

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });

const answers = async (url: URL): Promise<boolean> => {
  try {
    return (await fetch(url)).status < 500;
  } catch {
    // Not listening yet.
    return false;
  }
};

/** Its first lines name an address of this machine that it may not listen on yet. */
const startGateway = async (cwd: string): Promise<Server> => {
  const port = await freePort();
  const script = join(cwd, 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js');
  const command = [process.execPath, script, `--port=${port}`, '--headless'];
  const server = await startServer(
    'gateway',
    ['/bin/sh', '-c', `echo http://127.0.0.1:${port}; exec "$@"`, 'sh', ...command],
    cwd,
  );
  const until = performance.now() + startTimeoutMs;
  while (!(await answers(server.url))) {
    if (performance.now() > until) throw new Error('The gateway did not start in time');
    await delay(100);
  }
  return server;
};

const throughGateway = (call: Call, simulator: Server): Call => ({
  ...call,
  headers: `x-portkey-provider: openai\r\nx-portkey-custom-host: ${simulator.url.origin}/v1\r\nauthorization: Bearer none\r\n`,
});

/** Exposed models, each request a stored run, side by side with the gateway on the same provider. Null: it is not there. */
export const measureGateway = async (
  folder: string,
  program: Program,
  simulator: Server,
  options: TurnsOptions,
  note: (text: string) => void,
): Promise<readonly GatewayTurns[] | null> => {
  const cwd = install(folder, note);
  if (cwd === null) return null;
  const gateway = await startGateway(cwd);
  const acp = await startAcp(program, acpFolder(folder, 'exposed', simulator, { exposesModels: true }).cwd);
  const measured: GatewayTurns[] = [];
  for (const answers of ['both', 'sse', 'json'] as const) {
    const kinds: readonly Answer[] = answers === 'both' ? ['sse', 'json'] : [answers];
    const passed = kinds.map((answer) => throughGateway(modelCall(gateway, answer), simulator));
    const stored = kinds.map((answer) => modelCall(acp, answer, 'openai'));
    const sides: Side[] = [
      { name: 'gateway, nothing stored', server: gateway, call: passed },
      { name: 'acp, each run stored', server: acp, call: stored },
    ];
    measured.push({ answers, turns: await measureTurns(sides, options) });
  }
  await Promise.all([gateway.stop(), acp.stop()]);
  return measured;
};
