import { request } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Server } from './servers.ts';

const body = JSON.stringify({ message: 'Name twenty words that come to mind when you think of a river.' });

/** When each frame of an event stream arrived, by its id; resolves at the end of the stream. */
const arrivals = (
  url: URL,
  method: 'GET' | 'POST',
  opened: (runId: string) => void = () => undefined,
): Promise<Map<string, number>> =>
  new Promise((resolve, reject) => {
    const times = new Map<string, number>();
    const headers = { accept: 'text/event-stream', ...(method === 'POST' && { 'content-type': 'application/json' }) };
    const outgoing = request(url, { method, headers }, (answer) => {
      if (answer.statusCode !== 200) {
        reject(new Error(`${method} ${url.href} was answered with ${answer.statusCode}`));
        return;
      }
      opened(String(answer.headers['x-run-id']));
      answer.setEncoding('utf8').on('data', (text: string) => {
        for (const [, id = ''] of text.matchAll(/^id: ?(\d+)$/gm)) times.set(id, performance.now());
      });
      answer.once('end', () => resolve(times)).once('error', reject);
    });
    outgoing.once('error', reject);
    outgoing.end(method === 'POST' ? body : undefined);
  });

/** Milliseconds by which events of runs reach a client of another process later than one of their own; ascending. */
export const measureEventsElsewhere = async (executes: Server, other: Server, runs: number): Promise<number[]> => {
  const delays: number[] = [];
  for (let count = 0; count < runs; count += 1) {
    const reading = Promise.withResolvers<Map<string, number>>();
    const own = await arrivals(new URL('/api/agents/plain/run', executes.url), 'POST', (runId) => {
      arrivals(new URL(`/api/runs/${runId}/events`, other.url), 'GET').then(reading.resolve, reading.reject);
    });
    const elsewhere = await reading.promise;
    for (const [id, at] of elsewhere) {
      const before = own.get(id);
      if (before !== undefined) delays.push(at - before);
    }
  }
  return delays.sort((a, b) => a - b);
};
