import { HOUR, MINUTE, SECOND } from '../duration.ts';
import { age, bool, duration, int, ratio } from '../number-kinds.ts';
import { group, planned, setting } from '../schema-nodes.ts';
import { text } from '../text-kinds.ts';
import { listOf } from '../value-kind.ts';

export const evaluationSettings = {
  OnlineEvaluation: planned(
    'online-evaluation',
    group('Judging a share of real runs. Needs a rate and a judge.', {
      Enabled: setting(bool(), false, 'Runs are judged.'),
      SampleRate: setting(ratio(), 0, 'Share of the runs that is judged.'),
      MaxScoresPerHour: setting(int({ min: 0 }), 100, 'Scores an hour for each tenant.'),
      AgentNames: setting(listOf(text(), { unique: true }), [], 'Agents whose runs are judged. Empty: all.'),
      LowScoreThreshold: setting(int({ min: 0, max: 100 }), 60, 'An average below this raises the alarm.'),
      MinSampleSize: setting(int({ min: 1 }), 20, 'Scores an average needs before it can.'),
      EvaluationWindow: setting(age(), HOUR, 'Time the average looks back.'),
      JudgeTimeout: setting(duration(), 60 * SECOND, 'Time one judge may take.'),
    }),
  ),
  Canary: planned(
    'canaries',
    group('Trial versions of agents.', {
      AutoRollbackEnabled: setting(bool(), false, 'A trial that goes badly is ended without a person.'),
      ScanInterval: setting(duration(), 5 * MINUTE, 'Pause between looks at running trials.'),
    }),
  ),
};
