import { AcpError } from '../../contract/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { SqlDialect } from '../dialect.ts';
import type { StoreCondition } from '../store-condition.ts';
import { openAnnouncements, type PostgresAnnouncements } from './announcements.ts';
import { addressText, parseConnectionString } from './connection-string.ts';
import { clientConfig, createConnections } from './connections.ts';
import { createPostgresDialect } from './dialect.ts';
import { type HoldNote, holdWords } from './hold-note.ts';
import { connectListening } from './listening.ts';
import { migrationLock } from './migration-lock.ts';
import { openFailure } from './open-failure.ts';
import { openReplica, writtenBytes } from './replica.ts';
import { postgresCondition, watchPostgres } from './store-watch.ts';

/** Where a store in PostgreSQL is, and how it may be used. */
export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`, with the parameters of `parseConnectionString`. */
  readonly connectionString: string;
  /** Where announcements are listened to, past a pooler that lends connections by transaction; null: the same. */
  readonly directConnectionString: string | null;
  /** A standby of the server, for reads over history; null: there is none. */
  readonly readReplica?: string | null;
  readonly schema: string;
  /** Of this process, all together. */
  readonly maxConnections: number;
}

interface HoldSteps {
  end(): Promise<void>;
  aside(): Promise<void>;
}

export interface OpenedPostgres {
  readonly dialect: SqlDialect;
  readonly condition: StoreCondition;
  /** Server and database, for people: no user, no password. */
  readonly address: string;
  /** Makes the schema where it is missing; before migrations. */
  prepare(): Promise<void>;
  /** Why the store could not be opened, in words that name the server; what is not the store's doing stays as it is. */
  failure(error: unknown): unknown;
  /** Throws `store-unavailable` for a store that a move has, or has had; before anything is written. */
  refuseHeld(): Promise<void>;
  /** Once a move asks for reads only: `end` ends what writes, then every write is refused, and `aside` tells that. */
  holdWhenAsked(steps: HoldSteps): void;
  /** Why nothing is written any more; null: it is. */
  heldFor(): string | null;
  /** Connects once more, for what the processes of the store tell each other. */
  announcements(): PostgresAnnouncements;
  stop(): Promise<void>;
}

const heldWords = 'The store is being moved: this process answers reads only, until it is started again.';

// The connection that listens, and that holds the lock of migrations before it does.
const besidePool = 1;

// One is enough while commits are quick; the others are for the time in which a lock is waited for.
const lanesOf = (connections: number): number => Math.max(1, Math.min(4, Math.floor(connections / 2)));

/** Connects nothing yet: the first statement does. Design: docs/design/postgresql.md. */
export const openPostgres = (
  { connectionString, directConnectionString, readReplica = null, schema, maxConnections }: PostgresOptions,
  { commandTimeoutMs, log }: { readonly commandTimeoutMs: number; readonly log: Pick<Logger, 'error' | 'warn'> },
): OpenedPostgres => {
  const ofReplica = readReplica === null ? 0 : Math.max(1, Math.min(4, Math.floor(maxConnections / 4)));
  const most = Math.max(maxConnections - besidePool - ofReplica, 1);
  const server = parseConnectionString(connectionString);
  const direct = directConnectionString === null ? server : parseConnectionString(directConnectionString);
  const address = addressText(server);
  const condition = postgresCondition(address, log);
  const connections = createConnections({
    address: server,
    most,
    commandTimeoutMs,
    failed: condition.failed,
  });
  const replica =
    readReplica === null
      ? null
      : openReplica({
          ...{ address: parseConnectionString(readReplica), most: ofReplica, commandTimeoutMs, log },
          written: () => writtenBytes(connections),
        });
  const dialect = createPostgresDialect({
    connections,
    replica,
    schema,
    lanes: lanesOf(most),
    refusesWrites: () => condition.trouble === 'read-only',
    log,
    exclusive: migrationLock(server, schema),
  });
  let steps: HoldSteps | null = null;
  let isAsked = false;
  let heldFor: string | null = null;
  const holdFor = async (note: HoldNote, { end, aside }: HoldSteps): Promise<void> => {
    log.warn({ address, ...note }, 'A move asks this process to end what it does and to answer reads only');
    await end();
    heldFor = holdWords(note);
    connections.hold(new AcpError('store-unavailable', heldWords, { cause: new Error(heldFor) }));
    log.warn({ address }, heldWords);
    await aside();
  };
  const watch = watchPostgres(dialect, condition, async () => {
    const note = await connections.look(schema);
    if (note === null || steps === null || isAsked) return;
    isAsked = true;
    void holdFor(note, steps).catch((error: unknown) =>
      log.error({ address, error }, 'The store could not be held for a move'),
    );
  });
  return {
    dialect,
    condition,
    address,
    prepare: () => connections.ensureSchema(schema),
    async refuseHeld() {
      const note = await connections.holdNote(schema);
      if (note !== null) throw new AcpError('store-unavailable', holdWords(note));
    },
    holdWhenAsked(asked) {
      steps = asked;
    },
    heldFor: () => heldFor,
    failure: (error) => openFailure(server, error),
    announcements: () =>
      openAnnouncements({
        connect: (events) => connectListening(clientConfig(direct), events),
        // Other schemas of the database are other stores.
        channel: schema,
        log,
      }),
    stop: () => watch.stop(),
  };
};
