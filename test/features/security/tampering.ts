// Somebody who can write to the database moves encrypted values: no door of the service puts one where it does not belong.
import type { RootStorage } from '../../../src/db/storage.ts';
import type { TestApp } from '../../support/app.ts';

/** What somebody does to encrypted values who can write to the database and has no key. */
export interface Tampering {
  /** The input of one run stands with another one, too. */
  moveInput(fromRunId: string, toRunId: string): Promise<unknown>;
  /** The results of a run's tool calls are what the tools were called with. */
  argumentsAsResult(runId: string): Promise<unknown>;
}

export const tampering = (app: TestApp): Tampering => {
  const { db }: RootStorage = app.store.open();
  return {
    moveInput: (from, to) =>
      db
        .updateTable('run_inputs')
        .set((eb) => ({
          messages: eb
            .selectFrom('run_inputs as source')
            .select('source.messages')
            .where('source.run_id', '=', from)
            .$asScalar()
            .$notNull(),
        }))
        .where('run_id', '=', to)
        .execute(),
    argumentsAsResult: (runId) =>
      db
        .updateTable('tool_invocations')
        .set((eb) => ({ result: eb.ref('arguments') }))
        .where('run_id', '=', runId)
        .execute(),
  };
};
