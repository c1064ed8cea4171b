import { test } from 'node:test';
import { createFolder } from '../cli/support.ts';
import { createDatabase, findPostgres } from '../support/postgres-server.ts';
import { openTerminal, withoutTmux } from './terminal.ts';

const withoutServer = findPostgres() === null ? 'there is no server of PostgreSQL' : false;

test('screens without an address say whose store they show, and with one which service', {
  skip: withoutTmux || withoutServer,
}, async (t) => {
  const database = await createDatabase();
  t.after(() => database.drop());
  const folder = createFolder(t);
  const there = [
    ...['--set', 'Service:Persistence:Provider=Postgres'],
    ...['--set', `Service:Persistence:Postgres:ConnectionString=${database.url}`],
    ...['--set', 'Service:Persistence:Postgres:MaxConnections=4'],
  ];
  const { url } = await folder.serve(there);
  for (const [args, expected] of [
    [there, /shared store +● connected/],
    [['--url', url], new RegExp(`${new URL(url).host} +● connected`)],
  ] as const) {
    const terminal = await openTerminal(t, folder.path, ['tui', ...args]);
    await terminal.until(expected);
    await terminal.press('q');
    await terminal.until(/ended 0/);
  }
});
