// A server of PostgreSQL for as long as whoever started this program holds its input open, also where that one is killed.
import process from 'node:process';
import { startPostgresServer, whyNoServer } from './postgres-server.ts';

const input = process.stdin.resume();
// What a terminal sends to all is meant for the tests, which end first.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

const reason = whyNoServer();
if (reason === null) {
  const server = await startPostgresServer();
  input.once('close', () => void server.stop());
  process.stdout.write(`${server.url}\n`);
  if (input.destroyed || input.readableEnded) await server.stop();
} else process.stdout.write('\n', () => process.exit());
