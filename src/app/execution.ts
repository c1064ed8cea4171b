import { parseDefinitionDocuments } from '../core/documents/definition-documents.ts';
import { a2aFeature } from '../features/a2a/index.ts';
import { agentReferences, agentsFeature, loadCodeAgents } from '../features/agents/index.ts';
import { approvalsFeature } from '../features/approvals/index.ts';
import { attachmentsFeature } from '../features/attachments/index.ts';
import { batchesFeature } from '../features/batches/index.ts';
import { exposureFeature } from '../features/exposure/index.ts';
import { externalRunsFeature } from '../features/external-runs/index.ts';
import { guardsFeature } from '../features/guards/index.ts';
import { idempotencyFeature } from '../features/idempotency/index.ts';
import { createFlowPlaces, createHeldJobs, groupedQueue, jobItemStore, jobStore } from '../features/jobs/index.ts';
import { mcpServersFeature } from '../features/mcp-servers/index.ts';
import { memoryFeature } from '../features/memory/index.ts';
import { providerAccessFeature } from '../features/provider-access/index.ts';
import { quotasFeature } from '../features/quotas/index.ts';
import { remoteAgentsFeature, withRemoteAgents } from '../features/remote-agents/index.ts';
import { retentionFeature } from '../features/retention/index.ts';
import {
  approvalResumeKey,
  createLostTurns,
  createRunWrites,
  pauseContextOf,
  preflightCheck,
  runsFeature,
  turnStore,
} from '../features/runs/index.ts';
import { schedulesFeature } from '../features/schedules/index.ts';
import { runScores } from '../features/scores/index.ts';
import { createQueuedPlaces, createSessionWaits, sessionStore, sessionsFeature } from '../features/sessions/index.ts';
import { skillsFeature } from '../features/skills/index.ts';
import { triggersFeature } from '../features/triggers/index.ts';
import { webhooksFeature } from '../features/webhooks/index.ts';
import { createJobSignal } from '../scheduler/job-signal.ts';
import type { Foundation } from './foundation.ts';
import { composeModuleJobs, scheduleKeys } from './scheduled-work.ts';
import { composeWorker, watchJobs } from './worker.ts';

/** What executes runs, and all that a run passes. Each part gets what it needs from those above it. */
export const composeExecution = async (foundation: Foundation) => {
  const { base, opened, providers, modules, hostTools } = foundation;
  const { Service, Host } = base.config;
  const { storage, storeClock, log, now } = base;
  const { batch } = opened.storage;
  const content = guardsFeature({ ...base, guards: modules.guards, usesPattern: modules.usesPatternGuard });
  const memory = memoryFeature({ storage, now });
  const jobs = storage.stores(jobStore);
  const { wake, heard } = createJobSignal();
  const places = createFlowPlaces({ storage, wake, log, now: storeClock.now });
  const held = createHeldJobs({ ...base, jobs, places, wake, now: storeClock.now });
  const webhooks = webhooksFeature({ ...base, batch, jobs, wake, now: storeClock.now });
  const { events } = webhooks;
  const queue = webhooks.jobEnds.telling(groupedQueue(jobs, batch));
  const quotas = quotasFeature({ ...base, batch, events, turns: storage.stores(turnStore) });
  const queuedPlaces = createQueuedPlaces({ ...base, shared: opened.shared, now: storeClock.now });
  const writes = createRunWrites({
    ...base,
    now: storeClock.now,
    batch,
    jobs,
    queuedPlaces,
    quotas: quotas.active,
    wake,
  });
  const storedSessions = storage.stores(sessionStore);
  const waits = createSessionWaits({ ...base, clock: storeClock });
  const attachments = attachmentsFeature({
    ...base,
    content: opened.contents,
    limits: {
      maxBytes: Service.Attachments.MaxBytes,
      allowedMediaTypes: Service.Attachments.AllowedMediaTypes,
    },
    session: storedSessions.get,
  });
  const approvals = approvalsFeature({
    ...base,
    clock: storeClock,
    guards: content,
    policy: modules.approvalPolicy,
    presenters: modules.approvalPresenters,
    continuations: { queued: writes.queued.resumption, wake: writes.queued.resumed },
    contextOf: pauseContextOf,
    resumeLane: Service.Scheduling.LaneByHandlerKey[approvalResumeKey] ?? 'default',
    events,
    waits,
  });
  const sessions = sessionsFeature({
    ...base,
    batch,
    shared: opened.shared,
    clock: storeClock,
    now: storeClock.now,
    deletions: [attachments.removeWithSession, memory.forgetSession, approvals.dropSession],
    cleanups: [attachments.cleanupWithSession],
    store: storedSessions,
    waits,
    lostTurn: createLostTurns({ ...base, ...writes, turns: storage.stores(turnStore), now: storeClock.now }).ofRun,
    mailbox: approvals.mailbox,
    recordReasoningDeltas: Service.RunRecording.RecordReasoningDeltas,
  });
  const skills = await skillsFeature({ ...base, modules: modules.skills });
  const providerAccess = providerAccessFeature({ ...base, providers });
  const remoteAgents = remoteAgentsFeature({
    ...base,
    now: storeClock.now,
    definitions: {
      list: (tenantId) => agents.known.list(tenantId),
      find: (tenantId, name) => agents.known.find(tenantId, name),
    },
  });
  const tools = withRemoteAgents(hostTools.registry, remoteAgents.tools);
  const mcpServers = mcpServersFeature({
    ...base,
    tokenStore: modules.mcpTokenStore,
    clock: storeClock,
    now: storeClock.now,
    tools,
  });
  const references = agentReferences(providers, tools, Service, {
    hostSkills: skills.hostSkills,
    builtInTools: (definition, enabled) => [...memory.builtInTools(definition), ...skills.tools(enabled)],
    loopCriteria: modules.loopCriteria,
    allowsProvider: providerAccess.access.allows,
    remoteAgents: remoteAgents.references,
  });
  const codeAgents = await loadCodeAgents(Host.Agents, {
    ...references,
    parse: parseDefinitionDocuments,
    modules: modules.agents,
  });
  for (const warning of codeAgents.warnings) log.warn({ ...warning }, 'An agent of the host has a warning');
  const agents = agentsFeature({
    ...base,
    references,
    codeAgents,
    exposesModels: Host.OpenAiCompat.ExposeModels,
    exposedModels: Host.OpenAiCompat.Models,
    history: ({ tenantId, principal }, sessionId) => sessions.historyFor(tenantId, sessionId, principal),
    skills: skills.agentSkills,
    remoteTools: mcpServers.tools,
    attachments: attachments.runs,
    reserveRatio: Service.Preflight.ReserveRatio,
  });
  const retention = retentionFeature({
    ...base,
    clock: storeClock,
    wake,
    archiveSink: modules.archiveSink,
    archiveFolder: Host.ArchiveFolder,
    removeSession: sessions.removeUnused,
    removeOrphan: attachments.removeOrphan,
    bytesOf: attachments.bytesOf,
    messagesOf: sessions.publicMessages,
  });
  const idempotency = idempotencyFeature({ ...base, clock: storeClock, keptMs: retention.keysKeptMs });
  const runs = runsFeature({
    ...base,
    batch,
    places,
    held,
    shared: opened.shared,
    writes,
    events,
    providerAccess: providerAccess.access,
    agents: agents.source,
    sessions,
    queuedPlaces,
    jobs: queue,
    authorizer: modules.toolAuthorizer,
    remoteTasks: remoteAgents.lostTasks,
    attachments: attachments.runs,
    resources: mcpServers.resources,
    saveAttachment: attachments.save,
    guards: content.guards,
    gate: approvals.gate,
    pauseJournal: approvals.pauseJournal,
    quotas: quotas.active,
    scoresOf: runScores(storage),
    providers,
    preflight: Service.Preflight.Enabled
      ? preflightCheck(Service.Preflight.ReserveRatio, sessions.history, attachments.runs)
      : null,
    memory: memory.memory,
    structuredResponseValidators: modules.structuredResponseValidators,
    loopCriteria: modules.loopCriteria,
    wake,
  });
  const exposure = exposureFeature({
    log,
    launch: runs.launch,
    engine: runs.engine,
    records: runs.records,
    cancelRun: runs.cancelRun,
    authorization: base.authorization,
    sessions: storedSessions,
    agents: agents.source,
    presentationOf: agents.presentationOf,
    tree: runs.treeLimits,
  });
  const a2a = a2aFeature({
    ...base,
    exposure: exposure({
      source: 'a2a',
      setting: 'Host:A2A:Agents',
      allowlist: Host.A2A.Agents,
      budget: Host.A2A.Budget,
    }),
    records: runs.records,
    events: runs.events,
    attachments,
  });
  const externalRuns = externalRunsFeature({ ...base, writes, providers, quotas: quotas.active });
  const items = storage.stores(jobItemStore);
  const batches = batchesFeature({
    ...base,
    launch: runs.launch,
    engine: runs.engine,
    itemRuns: runs.itemRuns,
    items,
    jobs,
    held,
    agentExists: agents.exists,
    recordingEnabled: Service.RunRecording.Enabled,
    maxConcurrentItems: Service.Scheduling.MaxConcurrentItems,
  });
  const moduleJobs = composeModuleJobs(base, modules.jobs, items);
  const watched = watchJobs(base, queue);
  const schedules = schedulesFeature({
    ...base,
    clock: storeClock,
    wake,
    places,
    heedCancel(id) {
      base.announcements.announce('cancel', id);
      worker.toldToStop(id);
    },
    failures: { ...webhooks.jobEnds, ended: watched.lost },
    keys: scheduleKeys(foundation.config, [
      { ...batches.schedulable, isOffered: true },
      { ...retention.schedulable, isOffered: true },
      ...moduleJobs.schedulable,
    ]),
  });
  const triggers = triggersFeature({ ...base, launch: runs.launch, agentExists: agents.exists });
  const { worker, heartbeats } = composeWorker(base, {
    queue,
    telemetry: watched,
    places,
    handlers: {
      ...runs.jobHandlers,
      ...runs.leftJobHandlers,
      ...retention.jobHandlers,
      ...webhooks.jobHandlers,
      ...batches.jobHandlers,
      ...moduleJobs.handlers,
    },
    async lost(job) {
      await runs.lostJob(job);
      await webhooks.lostJob(job);
      await batches.lostJob(job);
    },
  });
  heard(worker.wake);
  return {
    jobs,
    items,
    content,
    externalRuns,
    moduleJobs,
    schedules,
    wake,
    places,
    quotas,
    sessionStore: storedSessions,
    attachments,
    approvals,
    sessions,
    skills,
    providerAccess,
    codeAgents,
    agents,
    retention,
    idempotency,
    webhooks,
    tools,
    remoteAgents,
    mcpServers,
    runs,
    exposure,
    a2a,
    triggers,
    worker,
    heartbeats,
  };
};

export type Execution = Awaited<ReturnType<typeof composeExecution>>;
