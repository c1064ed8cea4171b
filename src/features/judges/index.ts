import type { Config } from '../../core/config/schema.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { RunRecords } from '../runs/index.ts';
import { judgeScores } from '../scores/index.ts';
import { createJudgeCalls, type JudgeCallDeps } from './judge-calls.ts';
import { createJudgeRound } from './judge-round.ts';
import { createJudgeTelemetry } from './judge-telemetry.ts';
import { type JudgeServiceDeps, judgeService } from './judges.service.ts';

export type { AskAgent, Judge, JudgedRun, JudgeVerdict } from './judge.ts';

export interface JudgesDeps
  extends Omit<JudgeServiceDeps, 'ask' | 'save' | 'placeOf' | 'launch'>,
    Omit<JudgeCallDeps, 'telemetry'> {
  readonly launch: JudgeServiceDeps['launch'] & JudgeCallDeps['launch'];
  readonly records: RunRecords;
  readonly now: () => number;
  readonly newId: () => string;
  readonly config: Config;
  readonly storage: Storage;
  readonly telemetry: Telemetry;
  readonly log: Logger;
}

export const judgesFeature = ({ config, storage, telemetry: service, log, ...deps }: JudgesDeps) => {
  const { now, newId } = deps;
  const telemetry = createJudgeTelemetry(service, config.Service.Pricing.Currency, deps.records.spanOf);
  const calls = createJudgeCalls({ ...deps, telemetry });
  const timeoutMs = config.Service.OnlineEvaluation.JudgeTimeout;
  return {
    handlers: judgeService({
      ...deps,
      placeOf: telemetry.placeOf,
      ask: createJudgeRound({ timeoutMs, telemetry, calls, log }),
      save: judgeScores(storage, newId, now),
    }),
  };
};
