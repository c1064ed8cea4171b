import { parentPort, workerData } from 'node:worker_threads';
import { openSqliteCheckpointer, type SqliteThreadOptions } from './open.ts';

const db = openSqliteCheckpointer(workerData as SqliteThreadOptions);

// Whatever happens is seen in the log's size, which the watchdog looks at next; an answer only says that it is over.
parentPort?.on('message', () => {
  try {
    db.pragma('wal_checkpoint(PASSIVE)');
    parentPort?.postMessage(null);
  } catch (error) {
    parentPort?.postMessage(error instanceof Error ? error.message : String(error));
  }
});
