import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import type { RunRow } from '../../db/tables.ts';
import type { ChatMessage } from '../../engine/context/index.ts';
import type { Launch, RunAccess, RunRecords } from '../runs/index.ts';
import type { JudgedScore, JudgeOfRun, RunScore } from '../scores/index.ts';
import type { Judge, JudgedRun } from './judge.ts';
import type { createJudgeRound } from './judge-round.ts';
import type { JudgePlace, JudgeTelemetry } from './judge-telemetry.ts';
import type { judgeOperations } from './judges.operations.ts';

export interface JudgeServiceDeps {
  readonly launch: Pick<Launch, 'assertMayStart'>;
  readonly judges: readonly Judge[];
  readonly access: Pick<RunAccess, 'find'>;
  readonly records: Pick<RunRecords, 'get' | 'recordedInput' | 'output' | 'toolNames'>;
  readonly placeOf: JudgeTelemetry['placeOf'];
  readonly ask: ReturnType<typeof createJudgeRound>;
  readonly save: (judge: JudgeOfRun, scores: readonly JudgedScore[]) => Promise<RunScore[]>;
}

/** What the person or program said in this turn; what a run went on with stands after a model's message. */
const inputText = (messages: readonly ChatMessage[]): string => {
  const first = messages.findIndex(({ role }) => role !== 'User');
  return (first === -1 ? messages : messages.slice(0, first))
    .flatMap(({ contents }) => contents.flatMap((part) => (part.type === 'Text' ? [part.text] : [])))
    .join('\n');
};

export const judgeService = (deps: JudgeServiceDeps): Handlers<typeof judgeOperations> => {
  const { access, records } = deps;

  /** Null: there is nothing that could be judged, now or at all. */
  const judgedRun = async ({ id, tenant_id: tenantId, status }: RunRow): Promise<JudgedRun | null> => {
    if (deps.judges.length === 0 || status !== 'Completed') return null;
    const [recorded, output] = await Promise.all([records.recordedInput(tenantId, id), records.output(tenantId, id)]);
    const input = recorded === null ? '' : inputText(recorded.messages);
    if (input.trim() === '' || output === null || output.trim() === '') return null;
    return { input, output, toolNames: await records.toolNames(tenantId, id), tenantId };
  };

  const judgeOne = async (context: CallContext, judge: Judge, row: RunRow, run: JudgedRun, place: JudgePlace) => {
    const outcome = await deps.ask(judge, { runId: row.id, run, place, context });
    if (outcome.kind === 'failed') return { scores: [], failures: [outcome.failure] };
    if (outcome.scores.length === 0) return { scores: [], failures: [] };
    // A judge may take its time, and what was erased meanwhile is not written about.
    if ((await records.get(row.tenant_id, row.id)) === undefined)
      throw new AcpError('run-not-found', `Run ${row.id} was not found.`);
    const author = `judge:${judge.name}`;
    const { tenantId } = context;
    const scores = await deps.save({ tenantId, runId: row.id, author, version: judge.version ?? null }, outcome.scores);
    return { scores, failures: [] };
  };

  return {
    async score(context, { params }) {
      const row = await access.find(context, params.runId, 'Judge');
      // A judge's reason may quote the run.
      await access.find(context, params.runId, 'Read');
      deps.launch.assertMayStart(context.tenantId, row.agent_name);
      const run = await judgedRun(row);
      if (run === null) return ok({ scores: [], failures: [] });
      const place = await deps.placeOf(row, context.trace ?? null);
      const verdicts = await Promise.all(deps.judges.map((judge) => judgeOne(context, judge, row, run, place)));
      return ok({
        scores: verdicts.flatMap(({ scores }) => scores),
        failures: verdicts.flatMap(({ failures }) => failures),
      });
    },
  };
};
