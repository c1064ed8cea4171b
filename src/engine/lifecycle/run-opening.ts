import { type ActiveRun, modelOf } from '../active-run.ts';
import { storedSavedAt } from '../compiled-agent.ts';
import {
  type AttachmentReference,
  attachmentsIn,
  type ChatMessage,
  type GivenContext,
  newMessage,
} from '../context/index.ts';
import { guardedAttachments } from '../control/index.ts';
import type { OpenedRun } from '../record/index.ts';
import { spansBelow, unsentTask, userMessage } from '../turn/index.ts';
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
    agentSavedAt: status === 'Queued' ? null : storedSavedAt(plan.agent),
    status,
    ...(status === 'Queued' ? { modelProvider: null, modelId: null } : modelOf(run)),
    isStreaming: plan.isStreaming,
    jobId: plan.job?.id ?? null,
    sessionId: run.session?.sessionId ?? plan.sessionId,
    userId: plan.userId,
    ownerId: plan.ownerId,
    // What its caller started, and not what came of it.
    door: plan.parent === null ? (plan.principal.door?.key ?? null) : null,
    remoteTask: plan.remote === null ? null : JSON.stringify(unsentTask(plan.remote.agent.id)),
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
      ...(plan.given === null ? {} : { given: givenCount(plan.given) }),
      ...(plan.resources === null || plan.resources.length === 0 ? {} : { resources: plan.resources }),
      ...(plan.asked === null ? {} : { asked: plan.asked }),
      ...(run.session?.summary ? { historySummary: run.session.summary } : {}),
    },
  };
};

const givenCount = ({ history, instructions }: GivenContext) => ({
  instructions: instructions !== null,
  history: history.length,
});

/** What a caller gave, as it stands before the other messages of its input. */
export const givenInput = (run: ActiveRun, ports: Pick<OpeningPorts, 'newId'>): readonly ChatMessage[] => {
  const { given } = run.plan;
  if (given === null) return [];
  const { history, instructions } = given;
  if (instructions === null) return history;
  return [
    newMessage(run.id, ports.newId(), 'System', run.startedAt, [{ type: 'Text', text: instructions }]),
    ...history,
  ];
};

/** The first event, and one for each document. */
export const appendStart = (run: ActiveRun): void => {
  const { plan } = run;
  run.log.append('run.started', {
    agentName: plan.agent.name,
    agentVersion: plan.agent.version,
    kind: plan.kind,
    attempt: plan.job?.attempt ?? 1,
    sessionId: run.session?.sessionId ?? plan.sessionId,
    ...modelOf(run),
    isStreaming: plan.isStreaming,
    parentRunId: plan.parent?.id ?? null,
    continuedFromRunId: plan.continuedFromRunId,
    replayOfRunId: plan.replay?.sourceRunId ?? null,
  });
  for (const document of plan.documents)
    run.log.append('document.attached', { name: document.name, bytes: Buffer.byteLength(document.content) });
};

/** The user's message; null when a turn goes on without one. */
export const messageOf = (run: ActiveRun, ports: Pick<OpeningPorts, 'newId'>): ChatMessage | null => {
  const { plan } = run;
  if (plan.resume?.next !== undefined) return plan.resume.next;
  const isEmpty = (plan.message ?? '') === '' && plan.documents.length === 0 && plan.attachments.length === 0;
  return plan.resume !== null && isEmpty ? null : userMessage(plan, ports.newId(), run.startedAt);
};

/** Reads what the agent names of remote servers, unless that was read before. Null: there is nothing to read. */
export const loadResources = (run: ActiveRun, ports: OpeningPorts): Promise<void> | null => {
  const { plan } = run;
  const { resources: names } = plan.agent;
  if (plan.resources !== null || names.length === 0) return null;
  const { tenantId, requestId } = plan;
  const asked = { tenantId, requestId, runId: run.id, names, signal: run.signal };
  return ports.resources.read({ ...asked, ...spansBelow(run, run.trace?.span ?? null) }).then((resources) => {
    run.plan = { ...run.plan, resources };
  });
};

const readAttachments = async (
  run: ActiveRun,
  ports: OpeningPorts,
  named: readonly AttachmentReference[],
  earlier: readonly AttachmentReference[],
): Promise<void> => {
  run.bypassesCache = true;
  const { tenantId } = run.plan;
  const sessionId = run.session?.sessionId ?? run.plan.sessionId;
  run.attachments = await ports.attachments.load({ tenantId, sessionId, named, earlier, signal: run.signal });
  if (ports.guards !== null)
    run.attachments = await guardedAttachments(run, ports.guards, run.attachments, [...named, ...earlier]);
  run.callRecord?.attached([...named, ...earlier], run.attachments);
};

/** Reads what the conversation names of attachments, so that a later delete does not disturb the run. Null: nothing. */
export const loadAttachments = (run: ActiveRun, ports: OpeningPorts): Promise<void> | null => {
  const { attachments, given } = run.plan;
  const named = given === null ? attachments : [...attachments, ...attachmentsIn(given.history)];
  const earlier = attachmentsIn([...run.history, ...run.messages]);
  return named.length === 0 && earlier.length === 0 ? null : readAttachments(run, ports, named, earlier);
};
