import type { Config } from '../../core/config/schema.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { RunRecords } from '../runs/index.ts';
import { judgeScores } from '../scores/index.ts';
import { createJudgeRound } from './judge-round.ts';
import { createJudgeTelemetry } from './judge-telemetry.ts';
import { type JudgeServiceDeps, judgeService } from './judges.service.ts';

export type { Judge, JudgedRun, JudgeVerdict } from './judge.ts';

export interface JudgesDeps extends Omit<JudgeServiceDeps, 'ask' | 'save' | 'placeOf'> {
  readonly records: RunRecords;
  readonly config: Config;
  readonly storage: Storage;
  readonly telemetry: Telemetry;
  readonly log: Logger;
  readonly now: () => number;
  readonly newId: () => string;
}

export const judgesFeature = ({ config, storage, telemetry: service, log, now, newId, ...deps }: JudgesDeps) => {
  const telemetry = createJudgeTelemetry(service, deps.records.spanOf);
  const timeoutMs = config.Service.OnlineEvaluation.JudgeTimeout;
  return {
    handlers: judgeService({
      ...deps,
      placeOf: telemetry.placeOf,
      ask: createJudgeRound({ timeoutMs, telemetry, log }),
      save: judgeScores(storage, newId, now),
    }),
  };
};
