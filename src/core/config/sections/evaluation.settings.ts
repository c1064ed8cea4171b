import { hourMs, minuteMs, secondMs } from '../duration.ts';
import { age, duration, int, ratio } from '../number-kinds.ts';
import { type ConfigNode, flag, group, planned, plannedGroup, setting } from '../schema-nodes.ts';
import { text } from '../text-kinds.ts';
import { listOf } from '../value-kind.ts';

const online = <N extends ConfigNode>(node: N): N => planned('online-evaluation', node);

export const evaluationSettings = {
  OnlineEvaluation: group('Scores of judges: on request, and of a share of real runs.', {
    Enabled: online(flag(false, 'A share of the runs is judged. Needs a rate and a judge.')),
    SampleRate: online(setting(ratio(), 0, 'Share of the runs that is judged.')),
    MaxScoresPerHour: online(setting(int({ min: 0 }), 100, 'Scores an hour for each tenant.')),
    AgentNames: online(setting(listOf(text(), { unique: true }), [], 'Agents whose runs are judged. Empty: all.')),
    LowScoreThreshold: online(setting(int({ min: 0, max: 100 }), 60, 'An average below this raises the alarm.')),
    MinSampleSize: online(setting(int({ min: 1 }), 20, 'Scores an average needs before it can.')),
    EvaluationWindow: online(setting(age(), hourMs, 'Time the average looks back.')),
    JudgeTimeout: setting(duration(), 60 * secondMs, 'Time one judge may take for one run.'),
  }),
  Canary: plannedGroup('canaries', 'Trial versions of agents.', {
    AutoRollbackEnabled: flag(false, 'A trial that goes badly is ended without a person.'),
    ScanInterval: setting(duration(), 5 * minuteMs, 'Pause between looks at running trials.'),
  }),
};
