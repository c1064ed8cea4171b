import Type, { type Static } from 'typebox';

/** The lists of an export, and the keys of what an erasure counts. */
export const subjectTargets = [
  'sessions',
  'conversations',
  'conversationItems',
  'responses',
  'runs',
  'runInputs',
  'runEvents',
  'toolInvocations',
  'spans',
  'runScores',
  'approvals',
  'attachments',
  'voiceSessions',
  'agentFiles',
] as const;
export type SubjectTarget = (typeof subjectTargets)[number];

export const DataSubjectErasureResult = Type.Object(
  {
    dryRun: Type.Boolean({ description: 'True: nothing was deleted' }),
    rowsByTarget: Type.Record(Type.String(), Type.Integer({ minimum: 0 }), {
      description: `Rows by list of the export: ${subjectTargets.join(', ')}`,
    }),
  },
  { title: 'DataSubjectErasureResult' },
);
export type DataSubjectErasureResult = Static<typeof DataSubjectErasureResult>;
