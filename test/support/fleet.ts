import assert from 'node:assert/strict';
import { openSite, type ServiceProcess, type Site, type SiteSetup, type StartOptions } from '../e2e/support.ts';
import { createDatabase } from './postgres-server.ts';
import { type RoundRobinProxy, startRoundRobinProxy } from './round-robin-proxy.ts';

export interface FleetSetup extends SiteSetup {
  readonly processes: number;
  /** Default: an empty one on the server of the test run. */
  readonly database?: string;
  /** Past a pooler that the address above leads to. */
  readonly directDatabase?: string;
}

/** Several processes on one PostgreSQL database, and a plain proxy that sends each request to the next one. */
export interface Fleet {
  /** Of the proxy. */
  readonly url: string;
  readonly proxy: RoundRobinProxy;
  readonly site: Site;
  /** Connection string of the database. */
  readonly database: string;
  /** The processes that serve; those that `end` has taken away are no longer among them. */
  readonly members: readonly ServiceProcess[];
  /** Starts one more process; the proxy sends requests to it from now on. */
  join(options?: StartOptions): Promise<ServiceProcess>;
  /** The proxy asks it no more; then the work is done to it, such as `kill` or `stop`. */
  end(member: ServiceProcess, how: 'kill' | 'stop'): Promise<void>;
  /** Stands still, as a machine that swaps or a container that is moved; the proxy goes on asking the others. */
  pause(member: ServiceProcess): void;
  resume(member: ServiceProcess): void;
  close(): Promise<void>;
}

/** Opens a fleet; the caller closes it when its tests are over. */
export const openFleet = async ({
  processes,
  database: given,
  directDatabase,
  ...setup
}: FleetSetup): Promise<Fleet> => {
  const database = given === undefined ? await createDatabase() : { url: given, drop: async () => undefined };
  const site = openSite({
    ...setup,
    service: {
      ...setup.service,
      Persistence: {
        Provider: 'Postgres',
        Postgres: {
          ConnectionString: database.url,
          MaxConnections: 8,
          ...(directDatabase !== undefined && { DirectConnectionString: directDatabase }),
        },
      },
    },
  });
  const members: ServiceProcess[] = [];
  const paused = new Set<ServiceProcess>();
  const proxy = await startRoundRobinProxy([]);
  const route = (): void => proxy.use(members.filter((member) => !paused.has(member)).map(({ url }) => url));
  const join = async (options?: StartOptions): Promise<ServiceProcess> => {
    const member = await site.serve(options);
    members.push(member);
    route();
    return member;
  };
  const close = async (): Promise<void> => {
    for (const member of paused) member.signal('SIGCONT');
    await proxy.close();
    await site.close();
    await database.drop();
  };
  try {
    // The first one makes the schema; `test/fleet/start.test.ts` starts all of them at once.
    for (let count = 0; count < processes; count += 1) await join();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url: proxy.url,
    proxy,
    site,
    database: database.url,
    members,
    join,
    async end(member, how) {
      const index = members.indexOf(member);
      assert.notEqual(index, -1, 'the process is a member');
      members.splice(index, 1);
      paused.delete(member);
      route();
      await member[how]();
    },
    pause(member) {
      paused.add(member);
      route();
      member.signal('SIGSTOP');
    },
    resume(member) {
      member.signal('SIGCONT');
      paused.delete(member);
      route();
    },
    close,
  };
};
