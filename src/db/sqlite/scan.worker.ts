import { parentPort, workerData } from 'node:worker_threads';
import { storedParameters } from '../stored-text.ts';
import { openSqliteReader, type SqliteThreadOptions } from './open.ts';

export interface ScanRequest {
  readonly id: number;
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

export type ScanAnswer =
  | { readonly id: number; readonly rows: readonly unknown[] }
  | { readonly id: number; readonly failure: { readonly code: string | null; readonly message: string } };

const db = openSqliteReader(workerData as SqliteThreadOptions);

const answer = ({ id, sql, parameters }: ScanRequest): ScanAnswer => {
  try {
    return { id, rows: db.prepare(sql).all(...storedParameters(parameters)) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : null;
    return { id, failure: { code, message: error instanceof Error ? error.message : String(error) } };
  }
};

parentPort?.on('message', (request: ScanRequest) => parentPort?.postMessage(answer(request)));
