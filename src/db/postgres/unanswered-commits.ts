import { systemCode } from '../../core/files/system-code.ts';
import type { Logger } from '../../core/logger.ts';
import type { OnConnection } from './connection.ts';
import { CommitInDoubtError } from './failure.ts';
import type { Outage } from './outage.ts';
import { historySql, type TransactionMark } from './transaction-marks.ts';

/** What became of a transaction; null: nobody can tell. */
export type CommitOutcome = 'committed' | 'rolled back' | null;

interface Fate {
  /** Null: the server that answered follows another one, so that it is not the one to ask. */
  readonly history: string | null;
  /** Null: it is too long ago. */
  readonly status: 'committed' | 'aborted' | 'in progress' | null;
}

// As what runs write. The server ends a unit whose process is gone after ten seconds at most, so that this is long enough.
const settleMs = 30_000;

// invalid_parameter_value: the id is one that the server has not given yet.
const neverGiven = '22023';

const fateSql = `select history, case when history is not null then pg_catalog.pg_xact_status($1::xid8) end as status
  from ${historySql} as server`;

/** Asks what became of transactions whose commit was sent and not answered. */
export const createUnansweredCommits = (onConnection: OnConnection, outage: Outage, log: Pick<Logger, 'warn'>) => {
  /** Undefined: ask later. */
  const ask = async ({ id, history }: TransactionMark): Promise<CommitOutcome | undefined> => {
    try {
      const [answer] = await onConnection((connection) => connection.execute([{ sql: fateSql, parameters: [id] }]));
      const [fate] = (answer?.rows ?? []) as readonly Fate[];
      if (fate === undefined || fate.history === null || fate.status === 'in progress') return undefined;
      // In the history that goes on the id was not committed, whoever has it there.
      if (fate.status === 'aborted') return 'rolled back';
      // After a crash or a failover it may be the id of another transaction by now.
      return fate.status === 'committed' && fate.history === history ? 'committed' : null;
    } catch (error) {
      return systemCode(error) === neverGiven ? 'rolled back' : undefined;
    }
  };

  /** For what failed with an error; one that is about no such transaction has no outcome. */
  return async (error: unknown): Promise<CommitOutcome> => {
    if (!(error instanceof CommitInDoubtError) || error.mark === null || error.mark.history === null) return null;
    const isAskedAgain = outage.patience(settleMs);
    let outcome: CommitOutcome | undefined;
    do outcome = await ask(error.mark);
    while (outcome === undefined && (await isAskedAgain()));
    log.warn(
      { outcome: outcome ?? 'unknown' },
      'A commit was not answered, and the server was asked what became of it',
    );
    return outcome ?? null;
  };
};
