import type { ActiveRun } from '../active-run.ts';
import type { ChatMessage } from '../context/index.ts';
import type { OpenedRun } from '../record/index.ts';
import type { OpeningPorts } from './engine-ports.ts';

/** The row of a run as it is first stored, or as it starts. */
export const openedRow = (
  run: ActiveRun,
  ports: OpeningPorts,
  status: OpenedRun['status'],
  input: readonly ChatMessage[] | null,
): OpenedRun => {
  const { plan } = run;
  return {
    id: run.id,
    tenantId: plan.tenantId,
    kind: plan.kind,
    agentName: plan.agent.name,
    // Which version a run in line takes is known when its turn comes.
    agentVersion: status === 'Queued' ? null : plan.agent.version,
    status,
    modelProvider: status === 'Queued' ? null : run.target.provider.name,
    modelId: status === 'Queued' ? null : run.target.model,
    isStreaming: plan.isStreaming,
    jobId: plan.job?.id ?? null,
    sessionId: run.session?.sessionId ?? plan.sessionId,
    userId: plan.userId,
    ownerId: plan.ownerId,
    labels: plan.labels,
    parentRunId: plan.parent?.id ?? null,
    rootRunId: plan.parent === null ? null : run.rootId,
    continuedFromRunId: plan.continuedFromRunId,
    replayOfRunId: plan.replay?.sourceRunId ?? null,
    depth: run.depth,
    createdAt: plan.createdAt,
    startedAt: status === 'Queued' ? null : run.startedAt,
    input: ports.settings.recording.recordRunInput ? input : null,
    inputContext: {
      culture: plan.culture,
      parameters: plan.parameters,
      historyLength: run.session?.history.length ?? null,
      ...(run.session?.summary ? { historySummary: run.session.summary } : {}),
    },
  };
};
