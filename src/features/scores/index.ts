import type { Storage } from '../../db/storage.ts';
import type { RunScore } from './scores.schema.ts';
import { type ScoreServiceDeps, scoreService, toRunScore } from './scores.service.ts';
import { createScoreStore } from './scores.store.ts';

export const scoresFeature = ({
  storage,
  ...deps
}: Omit<ScoreServiceDeps, 'store'> & { readonly storage: Storage }) => {
  const store = createScoreStore(storage);
  return { handlers: scoreService({ ...deps, store }) };
};

/** The scores of a run, newest first, for features that show them with the run. */
export const runScores = (storage: Storage) => {
  const store = createScoreStore(storage);
  return async (tenantId: string, runId: string): Promise<RunScore[]> =>
    (await store.list(tenantId, runId)).map(toRunScore);
};
