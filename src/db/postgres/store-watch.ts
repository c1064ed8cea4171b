import type { Logger } from '../../core/logger.ts';
import type { SqlDialect } from '../dialect.ts';
import { type ConditionWords, createStoreCondition, type StoreCondition } from '../store-condition.ts';
import { classifyPostgres } from './failure.ts';

const words: ConditionWords = {
  full: 'The disk of the PostgreSQL server is full: nothing is stored until there is room',
  'read-only': 'The PostgreSQL server takes no writes: it is a standby, or was set read-only',
  corrupt: 'The PostgreSQL server reports damaged data: stop the service and look after the server',
  unavailable: 'The PostgreSQL server cannot be reached, or takes no connections',
  works: 'The PostgreSQL server takes what is written again',
  // Of a file alone.
  moved: 'The PostgreSQL server is another one',
  returned: 'The PostgreSQL server is the same again',
  refusal: 'The PostgreSQL server is another one.',
};

export const postgresCondition = (address: string, log: Pick<Logger, 'error' | 'warn'>): StoreCondition =>
  createStoreCondition(address, classifyPostgres, log, words);

// A service without traffic finds out within this; one with traffic by its first failure.
const intervalMs = 1000;

/** Writes a small thing each second while the store is in trouble, and looks each second whether the server answers. */
export const watchPostgres = (
  dialect: Pick<SqlDialect, 'probeWrite'>,
  condition: StoreCondition,
  look: () => Promise<unknown>,
) => {
  let looking: Promise<void> | null = null;
  let probing: Promise<void> | null = null;
  const probe = async (): Promise<void> => {
    try {
      await dialect.probeWrite();
      condition.works();
    } catch (error) {
      condition.failed(error);
    }
  };
  const turn = async (): Promise<void> => {
    try {
      await look();
    } catch (error) {
      condition.failed(error);
      return;
    }
    if (condition.trouble === null) return;
    // A write may wait for as long as a statement may; whether the server answers is looked at meanwhile, too.
    probing ??= probe().finally(() => {
      probing = null;
    });
  };
  const timer = setInterval(() => {
    looking ??= turn().finally(() => {
      looking = null;
    });
  }, intervalMs);
  timer.unref();
  return {
    async stop(): Promise<void> {
      clearInterval(timer);
      await looking;
      await probing;
    },
  };
};
