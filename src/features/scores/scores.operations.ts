import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { Uuid } from '../../contract/schema.ts';
import { RunFeedbackRequest, RunScore } from './scores.schema.ts';

const write = { tag: 'Runs', role: 'Operator', scope: 'RunsWrite' } as const;
const RunId = Type.Object({ runId: Uuid });

export const scoreOperations = defineOperations({
  save: {
    ...write,
    method: 'POST',
    path: '/api/runs/{runId}/feedback',
    summary: 'Score a run or one of its messages; replaces a score of the same author and name',
    description:
      'Scores of people and programs are stored with the run and counted in statistics. A comment can explain the score.',
    params: RunId,
    body: RunFeedbackRequest,
    responses: { 200: RunScore },
    errors: ['run-not-found'],
    cli: { command: 'runs score' },
  },
  list: {
    tag: 'Runs',
    role: 'Reader',
    scope: 'RunsRead',
    method: 'GET',
    path: '/api/runs/{runId}/feedback',
    summary: 'List the scores of a run, human and automatic, newest first',
    description: 'Scores of people and of judges are in one list, each with its author and source.',
    params: RunId,
    responses: { 200: Type.Array(RunScore) },
    errors: ['run-not-found'],
    cli: {
      command: 'runs scores',
      columns: ['id', 'name', 'kind', 'value', 'textValue', 'messageId', 'source', 'author', 'createdAt'],
    },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/runs/{runId}/feedback/{scoreId}',
    summary: 'Delete a score of a run',
    description: 'Statistics no longer count the score. The run itself does not change.',
    params: Type.Object({ runId: Uuid, scoreId: Uuid }),
    responses: { 204: null },
    errors: ['run-not-found', 'score-not-found'],
    audit: { action: 'run-score.delete', entity: 'run-score', mode: 'noted' },
    cli: { command: 'runs unscore', done: 'Deleted score {scoreId} of run {runId}.' },
  },
});
