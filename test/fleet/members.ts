import { type TestContext, test } from 'node:test';
import { type AppSetup, openApp, type TestApp } from '../support/app.ts';
import { createDatabase, findPostgres } from '../support/postgres-server.ts';

export const skip = findPostgres() === null && 'no PostgreSQL server is to be found';

/** How the members of a fleet come to know what others have changed. */
export type Hearing = 'announcements' | 'polling alone';

// Nobody listens at this address of the machine.
const nowhere = 'postgres://nobody@127.0.0.1:1/nothing';

export interface Fleet {
  readonly members: readonly TestApp[];
  /** Of their database. */
  readonly url: string;
}

/** Several services in this process, each with connections and memory of its own, on one database. */
export const openFleetHere = async (
  t: TestContext,
  setups: readonly AppSetup[],
  hearing: Hearing = 'announcements',
): Promise<Fleet> => {
  const { url, drop } = await createDatabase();
  const members: TestApp[] = [];
  const Postgres = {
    ConnectionString: url,
    MaxConnections: 6,
    DirectConnectionString: hearing === 'announcements' ? null : nowhere,
  };
  for (const setup of setups)
    members.push(
      await openApp(t, 'http', {
        storeTime: 'Server',
        ...setup,
        service: { ...setup.service, Persistence: { Provider: 'Postgres', Postgres } },
      }),
    );
  t.after(async () => {
    for (const member of members) await member.close();
    await drop();
  });
  return { members, url };
};

/** Its members alone. */
export const openMembers = async (...fleet: Parameters<typeof openFleetHere>): Promise<readonly TestApp[]> =>
  (await openFleetHere(...fleet)).members;

/** The same with announcements and without: these make it quick, and nothing may need them. */
export const forEachHearing = (name: string, body: (t: TestContext, hearing: Hearing) => Promise<void>): void => {
  for (const hearing of ['announcements', 'polling alone'] as const)
    test(`${name} [${hearing}]`, { skip }, (t) => body(t, hearing));
};
