import process from 'node:process';
import BetterSqlite3 from 'better-sqlite3';
import { fastify } from 'fastify';
import { Pool } from 'undici';

/**
 * What an engineer would write in an afternoon: a Fastify proxy in front of a provider that stores each run.
 * `node yardstick.ts <provider URL> <database file>`; POST / with {message, stream}. Prints its URL.
 */
const [providerUrl = '', file = ''] = process.argv.slice(2);
const provider = new Pool(providerUrl, { connections: 128, pipelining: 1 });

const db = new BetterSqlite3(file);
db.pragma('journal_mode = WAL');
db.pragma('synchronous = NORMAL');
db.exec(`create table if not exists runs (id integer primary key, message text, output_bytes int, started_at int, completed_at int);
  create table if not exists frames (run_id int, sequence int, data text, primary key (run_id, sequence)) without rowid`);
const insertRun = db.prepare('insert into runs (message, output_bytes, started_at, completed_at) values (?, ?, ?, ?)');
const insertFrame = db.prepare('insert into frames values (?, ?, ?)');
const store = db.transaction((message: string, startedAt: number, frames: readonly string[], size: number) => {
  const { lastInsertRowid } = insertRun.run(message, size, startedAt, Date.now());
  for (const [sequence, frame] of frames.entries()) insertFrame.run(lastInsertRowid, sequence, frame);
});

interface Body {
  readonly message: string;
  readonly stream: boolean;
}

const app = fastify();
app.post<{ Body: Body }>('/', async (request, reply) => {
  const { message, stream } = request.body;
  const startedAt = Date.now();
  const answer = await provider.request({
    path: '/v1/chat/completions',
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer none' },
    body: JSON.stringify({
      model: 'gpt-4.1-mini',
      messages: [{ role: 'user', content: message }],
      ...(stream && { stream: true, stream_options: { include_usage: true } }),
    }),
  });
  if (!stream) {
    const text = await answer.body.text();
    store(message, startedAt, [text], text.length);
    return reply.type('application/json').send(text);
  }
  reply.hijack();
  reply.raw.writeHead(answer.statusCode, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const chunks: Buffer[] = [];
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    reply.raw.write(chunk);
  }
  const text = Buffer.concat(chunks).toString();
  store(message, startedAt, text.split('\n\n').slice(0, -1), text.length);
  reply.raw.end();
});

console.log(await app.listen({ host: '127.0.0.1', port: 0 }));
process.once('SIGTERM', () => {
  db.close();
  process.exit(0);
});
