import { duration, int } from '../number-kinds.ts';
import { flag, group, optional, setting } from '../schema-nodes.ts';
import { nullable } from '../value-kind.ts';

const target = (what: string, days: number | null) =>
  group(what, {
    MaxAgeDays: setting(nullable(int({ min: 1 })), days, 'Days after which they go. Null: never.'),
    MaxRows: optional(int({ min: 1 }), 'How many of the newest stay. Null: all.'),
    Archive: flag(false, 'They are handed to the archive before they go.'),
  });

export const retentionSettings = {
  Retention: group('How long stored data is kept. A policy in the store comes before the settings of a target.', {
    Enabled: flag(false, 'Old data is removed every hour, and the settings below count.'),
    BatchSize: setting(int({ min: 1, max: 50_000 }), 5000, 'Rows removed in one transaction.'),
    BatchDelay: setting(duration({ zero: true }), 100, 'Pause between two transactions.'),
    Runs: target('Runs.', null),
    RunEvents: target('Event logs of runs.', 30),
    RunInputs: target('Inputs of runs.', 30),
    RunScores: target('Scores of runs.', 180),
    ToolInvocations: target('Records of tool calls.', 90),
    Spans: target('Traces.', 14),
    Jobs: target('Finished jobs.', 30),
    WebhookDeliveries: target('Finished deliveries.', 7),
    EvalCaseResults: target('Results of evaluation cases.', 180),
    WorkflowCheckpoints: target('Checkpoints of finished workflow runs.', 7),
    SkillScriptGrants: target('Grants that have ended.', 30),
    Attachments: target('Attachments that nothing refers to.', 7),
    VoiceSessions: target('Closed voice sessions.', 30),
    Sessions: target('Sessions.', null),
    Conversations: target('Conversations and stored responses.', null),
    DocumentEmbeddings: target('Vectors of documents.', null),
  }),
};
