import type { Storage } from '../../db/storage.ts';
import type { RunScore } from './scores.schema.ts';
import { blank, type ScoreServiceDeps, scoreService, toRunScore } from './scores.service.ts';
import { scoreStore } from './scores.store.ts';

export type { RunScore } from './scores.schema.ts';

export const scoresFeature = ({
  storage,
  ...deps
}: Omit<ScoreServiceDeps, 'store'> & { readonly storage: Storage }) => {
  const store = storage.stores(scoreStore);
  return { handlers: scoreService({ ...deps, store }) };
};

/** The scores of a run, newest first, for features that show them with the run. */
export const runScores = (storage: Storage) => {
  const store = storage.stores(scoreStore);
  return async (tenantId: string, runId: string): Promise<RunScore[]> =>
    (await store.list(tenantId, runId)).map(toRunScore);
};

/** A score that code of the host gave to a whole run. */
export interface JudgedScore {
  readonly name: string;
  readonly value: number;
  readonly comment: string | null;
}

/** Who gave it. */
export interface JudgeOfRun {
  readonly tenantId: string;
  readonly runId: string;
  readonly author: string;
  readonly version: string | null;
}

/** Writes what a judge says of a run, all of it or none: a row of the same name and author is replaced, its id stays. */
export const judgeScores = (storage: Storage, newId: () => string, now: () => number) => {
  const store = storage.stores(scoreStore);
  return async (judge: JudgeOfRun, scores: readonly JudgedScore[]): Promise<RunScore[]> => {
    const createdAt = now();
    const saved = await store.saveAll(
      scores.map(({ name, value, comment }) => ({
        id: newId(),
        tenant_id: judge.tenantId,
        run_id: judge.runId,
        message_id: blank,
        name,
        kind: 'Numeric',
        value,
        text_value: null,
        comment,
        source: judge.author,
        author: judge.author,
        evaluator_version: judge.version,
        created_at: createdAt,
      })),
    );
    const order = new Map(scores.map(({ name }, index) => [name, index]));
    return saved.map(toRunScore).sort((a, b) => (order.get(a.name) ?? 0) - (order.get(b.name) ?? 0));
  };
};
